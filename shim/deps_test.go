package shim

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/lameduck-init/lameduck/"

// walls says what each room may import beyond the standard library. A room
// that is not listed may not exist.
var walls = map[string][]string{
	"cmd/lameduck": {module + "shim", "github.com/alecthomas/kong"},
	"shim": {module + "shim/internal/alive", module + "shim/internal/health", module + "shim/internal/observe", module + "shim/internal/proc", module + "shim/internal/quote", module + "shim/internal/scope", module + "shim/internal/sig", module + "shim/internal/sigcatch",
		module + "shim/internal/stderr", module + "shim/internal/stop",
		module + "shim/internal/traffic", "golang.org/x/sys/unix"},
	"shim/internal/alive":  {"golang.org/x/sys/unix"},
	"shim/internal/proc":   {module + "shim/internal/sig", module + "shim/internal/sigcatch", "golang.org/x/sys/unix"},
	"shim/internal/e2e":    {}, // tests alone
	"shim/internal/health": {"golang.org/x/sys/unix"},
	"shim/internal/observe": {module + "shim/internal/alive", module + "shim/internal/health", module + "shim/internal/procnet", module + "shim/internal/scope",
		module + "shim/internal/sockdiag", module + "shim/internal/stop", module + "shim/internal/tcp", module + "shim/internal/traffic", "golang.org/x/sys/unix"},
	"shim/internal/procnet":         {module + "shim/internal/tcp", "golang.org/x/sys/unix"},
	"shim/internal/quote":           {},
	"shim/internal/scope":           {module + "shim/internal/procnet", module + "shim/internal/tcp", "golang.org/x/sys/unix"},
	"shim/internal/sockdiag":        {module + "shim/internal/tcp", "golang.org/x/sys/unix"},
	"shim/internal/sig":             {},
	"shim/internal/sigcatch":        {module + "shim/internal/sig"},
	"shim/internal/stderr":          {module + "shim/internal/quote", "golang.org/x/sys/unix"},
	"shim/internal/stop":            {module + "shim/internal/sig"},
	"shim/internal/tcp":             {},
	"shim/internal/testutil":        {module + "shim/internal/testutil/netns", "golang.org/x/sys/unix"}, // for tests, as are the next two
	"shim/internal/testutil/netns":  {"golang.org/x/sys/unix"},
	"shim/internal/testutil/script": {},
	"shim/internal/traffic":         {module + "shim/internal/tcp"},
}

// pure are the rooms of policy, and all that they may take from the standard
// library.
var pure = map[string][]string{
	"shim/internal/sig":     {"fmt", "math/bits", "slices", "strconv", "strings"},
	"shim/internal/tcp":     {"math", "net/netip", "time"},
	"shim/internal/quote":   {"iter", "strconv", "strings", "unicode/utf16", "unicode/utf8"},
	"shim/internal/stop":    {"fmt", "slices", "strings", "time"},
	"shim/internal/traffic": {"cmp", "encoding/binary", "hash/fnv", "net/netip", "slices", "sort", "time"},
}

// TestWalls: a room imports what it may, and nothing else.
func TestWalls(t *testing.T) {
	for path, file := range sources(t) {
		room := filepath.ToSlash(filepath.Dir(path))
		allowed, known := walls[room]
		if !known {
			t.Errorf("%s: the house has no such room", path)
		}
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			std := !strings.Contains(strings.Split(name, "/")[0], ".")
			if few, isPure := pure[room]; std && isPure && !slices.Contains(few, name) || !std && !slices.Contains(allowed, name) {
				t.Errorf("%s may not import %s", path, name)
			}
		}
	}
}

// TestPureRoomsHaveNoAssembly: the pure rooms build on every system and processor.
func TestPureRoomsHaveNoAssembly(t *testing.T) {
	for room := range pure {
		if found, _ := filepath.Glob(filepath.Join("..", room, "*.s")); len(found) > 0 {
			t.Errorf("%v in a pure room", found)
		}
	}
}

// TestPureRoomsHaveNoClock: policy is told the time.
func TestPureRoomsHaveNoClock(t *testing.T) {
	clock := []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "NewTimer", "NewTicker", "Tick"}
	for path, file := range sources(t) {
		if _, isPure := pure[filepath.ToSlash(filepath.Dir(path))]; !isPure {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, sel.Sel.Name) {
				t.Errorf("%s calls time.%s", path, sel.Sel.Name)
			}
			return true
		})
	}
}

// TestOneInit: signals are caught in the only init there is.
func TestOneInit(t *testing.T) {
	var found []string
	for path, file := range sources(t) {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				found = append(found, filepath.ToSlash(path))
			}
		}
	}
	if !slices.Equal(found, []string{"shim/internal/sigcatch/catch.go"}) {
		t.Errorf("init in %v", found)
	}
}

// TestNothingHeavy: the product does without what costs size and start-up time,
// or would wait for children behind our back.
func TestNothingHeavy(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "./cmd/lameduck")
	list.Dir = ".."
	list.Env = append(list.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, "os/signal") {
		t.Fatalf("an odd list: %v", deps)
	}
	for _, banned := range []string{"net", "net/http", "os/exec", "crypto/tls", module + "shim/internal/testutil", module + "shim/internal/testutil/netns", module + "shim/internal/testutil/script"} {
		if slices.Contains(deps, banned) {
			t.Errorf("the product imports %s", banned)
		}
	}
}

// sources are the product's files, by their paths from the top.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	for _, dir := range []string{"cmd", "shim"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, entry fs.DirEntry, err error) error {
			if entry != nil && entry.IsDir() && path != filepath.Join("..", dir) {
				if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
					return filepath.SkipDir // a module of its own
				}
			}
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			files[strings.TrimPrefix(filepath.ToSlash(path), "../")] = file
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) < 15 {
		t.Fatalf("only %d files found", len(files))
	}
	return files
}
