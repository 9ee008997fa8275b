package shim

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The limits of the house, for all Go files of all modules, tests included.
const (
	maxLines      = 50   // of a function; the tables of a test are not counted
	maxBranches   = 20   // cyclomatic complexity; see branches
	maxFields     = 12   // of a struct
	maxAssigned   = 2    // variables in a parallel assignment
	maxPronouns   = 0.07 // of the words in comments
	maxRoomFiles  = 15   // of a package below shim, without tests
	maxFrontFiles = 14   // of package shim, without tests
)

// long are the structs that may have more fields: plain values of the public API.
var long = []string{"Config", "View"}

// TestStyle checks the limits of functions, structs and statements.
func TestStyle(t *testing.T) {
	files := token.NewFileSet()
	sources := allSources(t, files)
	for _, path := range slices.Sorted(maps.Keys(sources)) {
		file := sources[path]
		at := func(n ast.Node) string { return fmt.Sprintf("%s:%d", path, files.Position(n.Pos()).Line) }
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				checkFunction(t, at(n), files, n, strings.HasSuffix(path, "_test.go"))
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && !slices.Contains(long, n.Name.Name) && s.Fields.NumFields() > maxFields {
					t.Errorf("%s: struct %s has %d fields", at(n), n.Name, s.Fields.NumFields())
				}
			case *ast.IfStmt:
				if a, ok := n.Init.(*ast.AssignStmt); n.Init != nil && (!ok || a.Tok != token.DEFINE) {
					t.Errorf("%s: a statement with a side effect in the header of an if", at(n))
				}
			case *ast.AssignStmt:
				if len(n.Rhs) > maxAssigned {
					t.Errorf("%s: a parallel assignment of %d", at(n), len(n.Rhs))
				}
			}
			return true
		})
	}
}

func checkFunction(t *testing.T, at string, files *token.FileSet, f *ast.FuncDecl, test bool) {
	t.Helper()
	n := lines(files, f)
	if test {
		n -= tableLines(files, f)
	}
	if n > maxLines {
		t.Errorf("%s: %s has %d lines", at, f.Name, n)
	}
	if n := 1 + branches(files, f); n > maxBranches {
		t.Errorf("%s: %s has a cyclomatic complexity of %d", at, f.Name, n)
	}
}

func lines(files *token.FileSet, n ast.Node) int {
	return files.Position(n.End()).Line - files.Position(n.Pos()).Line + 1
}

// tableLines returns the lines of the outermost lists and maps in a function.
func tableLines(files *token.FileSet, f *ast.FuncDecl) (sum int) {
	ast.Inspect(f, func(n ast.Node) bool {
		table, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		switch table.Type.(type) {
		case *ast.ArrayType, *ast.MapType:
			sum += lines(files, table) - 1
			return false
		}
		return true
	})
	return sum
}

// branches counts the branches of a function as gocyclo does, but for switches with a line
// for each case, which read as tables.
func branches(files *token.FileSet, f *ast.FuncDecl) (sum int) {
	tables := map[ast.Node]bool{} // the cases of such switches
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SwitchStmt:
			markTable(files, n.Body, tables)
		case *ast.TypeSwitchStmt:
			markTable(files, n.Body, tables)
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			sum++
		case *ast.CaseClause:
			if n.List != nil && !tables[n] {
				sum++
			}
		case *ast.CommClause:
			if n.Comm != nil {
				sum++
			}
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				sum++
			}
		}
		return true
	})
	return sum
}

// markTable adds the cases of a switch to tables if each has at most one line.
func markTable(files *token.FileSet, body *ast.BlockStmt, tables map[ast.Node]bool) {
	for _, clause := range body.List {
		statements := clause.(*ast.CaseClause).Body
		if len(statements) > 1 || len(statements) == 1 && lines(files, statements[0]) > 1 {
			return
		}
	}
	for _, clause := range body.List {
		tables[clause] = true
	}
}

// pronouns are the pronouns and dummies that a reader cannot search for.
var pronouns = strings.Fields(`it its itself one ones those these they them their who whom whose what
	whatever none nobody nothing anybody somebody everybody anyone someone something anything
	everything everyone there here he him his she this that which`)

var word = regexp.MustCompile(`[A-Za-z][A-Za-z']*`)

// TestVoice: comments have nouns.
func TestVoice(t *testing.T) {
	all, found := 0, 0
	worst := map[string]int{} // pronouns beyond the limit, by file
	for path, file := range allSources(t, token.NewFileSet()) {
		words, small := voice(file)
		all += words
		found += small
		worst[path] = small - int(maxPronouns*float64(words))
	}
	share := float64(found) / float64(all)
	t.Logf("%d of %d words in comments are pronouns: %.1f %%", found, all, 100*share)
	if share < maxPronouns {
		return
	}
	paths := slices.SortedFunc(maps.Keys(worst), func(a, b string) int { return cmp.Compare(worst[b], worst[a]) })
	t.Errorf("want less than %.0f %%; most to gain in %q", 100*maxPronouns, paths[:10])
}

// voice counts the words and the pronouns in the comments of a file.
func voice(file *ast.File) (words, small int) {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if strings.HasPrefix(comment.Text, "//go:") {
				continue
			}
			for _, w := range word.FindAllString(comment.Text, -1) {
				words++
				if slices.Contains(pronouns, strings.TrimSuffix(strings.ToLower(w), "'s")) {
					small++
				}
			}
		}
	}
	return words, small
}

// TestRoomSizes: no room is crowded.
func TestRoomSizes(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || entry.Name() == "testdata" {
			return err
		}
		room, err := build.ImportDir(path, 0)
		if _, empty := err.(*build.NoGoError); err != nil && !empty {
			return err
		}
		most := maxRoomFiles
		if path == "." {
			most = maxFrontFiles
		}
		if n := len(room.GoFiles); n > most {
			t.Errorf("shim/%s has %d files, and may have %d", path, n, most)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// allSources parses all Go files of all modules, by path from the repository's root.
func allSources(t *testing.T, files *token.FileSet) map[string]*ast.File {
	t.Helper()
	parsed := map[string]*ast.File{}
	for _, dir := range []string{"cmd", "docs", "shim", "testdata"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
			parsed[strings.TrimPrefix(filepath.ToSlash(path), "../")] = file
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(parsed) < 200 {
		t.Fatalf("only %d files found", len(parsed))
	}
	return parsed
}
