package shim

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestFaultsDocs: the tests that docs/contributing/faults.md names exist, and each row names a test.
func TestFaultsDocs(t *testing.T) {
	text, err := os.ReadFile(testutil.Path("docs/contributing/faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	named, known := regexp.MustCompile("`([a-z0-9]+/Test[^`]*)`"), testsThere(t)
	rows := 0
	for line := range strings.Lines(string(text)) {
		row := strings.Split(line, "|")
		if len(row) != 4 || strings.Contains(line, "---") || strings.TrimSpace(row[1]) == "promise" {
			continue
		}
		rows++
		tests := named.FindAllStringSubmatch(row[2], -1)
		if len(tests) == 0 {
			t.Errorf("nothing shows it: %s", line)
		}
		for _, test := range tests {
			if !known.has(test[1]) {
				t.Errorf("there is no test %q", test[1])
			}
		}
	}
	if rows < 40 {
		t.Errorf("%d rows", rows)
	}
}

// tests maps ROOM/TEST to the string literals of the test.
type tests map[string][]string

// testsThere returns the tests of this package and of the packages below.
func testsThere(t *testing.T) tests {
	t.Helper()
	known := tests{}
	here, _ := filepath.Glob("*_test.go")
	below, _ := filepath.Glob("internal/*/*_test.go")
	deeper, _ := filepath.Glob("internal/*/*/*_test.go")
	for _, path := range slices.Concat(here, below, deeper) {
		room := "shim"
		if dir := filepath.Dir(path); strings.HasPrefix(dir, "internal/e2e/") {
			room = "e2e" // in whichever folder
		} else if dir != "." {
			room = filepath.Base(dir)
		}
		for name, words := range testsIn(t, path) {
			known[room+"/"+name] = words
		}
	}
	return known
}

// has reports whether a test ROOM/TEST or ROOM/TEST/CASE exists.
func (known tests) has(path string) bool {
	room, rest, _ := strings.Cut(path, "/")
	name, one, _ := strings.Cut(rest, "/")
	words, found := known[room+"/"+name]
	return found && (one == "" || slices.Contains(words, one))
}

// testsIn returns the tests of a file, each with the string literals of the test and of
// the file's maps, and the first cells of their tables.
func testsIn(t *testing.T, path string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string][]string{}
	var outside []string
	for _, d := range file.Decls {
		var words []string
		ast.Inspect(d, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				word, _ := strconv.Unquote(lit.Value)
				words = append(words, word)
				for line := range strings.Lines(word) { // a case in a table of text
					cell, _, _ := strings.Cut(line, "|")
					words = append(words, strings.TrimSpace(cell))
				}
			}
			return true
		})
		if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") {
			tests[f.Name.Name] = words
		} else if !ok {
			outside = append(outside, words...)
		}
	}
	for name := range tests {
		tests[name] = append(tests[name], outside...)
	}
	return tests
}
