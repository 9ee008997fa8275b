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

// walls lists what each package may import beyond the standard library: the names of rooms
// (shim/internal/NAME), and cli (cmd/internal/cli), kong, shim and unix
// (golang.org/x/sys/unix). Every package has to be listed.
var walls = map[string]string{
	"cmd/lameduck":     "cli shim",
	"cmd/internal/cli": "kong shim",
	"shim":             "alive check cost health observe plan preset proc procfs quote report sig sigcatch stderr stop termlog traffic unix",

	"shim/internal/alive":    "unix",
	"shim/internal/check":    "",
	"shim/internal/closer":   "procfs scope sockdiag tcp unix",
	"shim/internal/cost":     "tcp traffic",
	"shim/internal/health":   "check unix",
	"shim/internal/letgo":    "tcp traffic",
	"shim/internal/observe":  "alive closer cost health letgo procfs scope sockdiag stop tcp traffic unix",
	"shim/internal/plan":     "check preset quote report sig stop traffic",
	"shim/internal/preset":   "sig stop",
	"shim/internal/proc":     "procfs sig sigcatch unix",
	"shim/internal/procfs":   "tcp unix",
	"shim/internal/quote":    "",
	"shim/internal/report":   "cost letgo quote sig stop traffic",
	"shim/internal/scope":    "procfs tcp unix",
	"shim/internal/sig":      "",
	"shim/internal/sigcatch": "sig",
	"shim/internal/sockdiag": "tcp unix",
	"shim/internal/stderr":   "quote unix",
	"shim/internal/stop":     "sig",
	"shim/internal/tcp":      "",
	"shim/internal/termlog":  "quote unix",
	"shim/internal/traffic":  "stop tcp",

	// For tests only.
	"shim/internal/e2e/box":         "github.com/creack/pty sig testutil testutil/netns unix",
	"shim/internal/testutil":        "testutil/netns unix",
	"shim/internal/testutil/flags":  "check plan preset sig stop",
	"shim/internal/testutil/netns":  "unix",
	"shim/internal/testutil/script": "",
	"shim/internal/testutil/world":  "stop tcp testutil/script traffic",
}

// pure lists the packages of policy, and all their imports from the standard library.
var pure = map[string]string{
	"shim/internal/check":   "fmt net/netip strconv strings",
	"shim/internal/cost":    "slices time",
	"shim/internal/letgo":   "cmp net/netip slices time",
	"shim/internal/plan":    "cmp errors fmt math net/netip slices strings time",
	"shim/internal/preset":  "path slices strconv strings sync time",
	"shim/internal/quote":   "strconv strings unicode/utf16 unicode/utf8",
	"shim/internal/report":  "cmp encoding/json fmt net/netip slices strings time",
	"shim/internal/sig":     "fmt math/bits slices strconv strings",
	"shim/internal/stop":    "errors fmt slices strconv strings time",
	"shim/internal/tcp":     "math net/netip slices time",
	"shim/internal/traffic": "cmp hash/maphash net/netip slices time",
}

// wallName returns the name of an import path in walls and pure.
func wallName(path string) string {
	switch path {
	case "github.com/alecthomas/kong":
		return "kong"
	case "golang.org/x/sys/unix":
		return "unix"
	case module + "shim":
		return "shim"
	case module + "cmd/internal/cli":
		return "cli"
	}
	return strings.TrimPrefix(path, module+"shim/internal/")
}

// TestWalls: a package imports nothing but what walls and pure allow.
func TestWalls(t *testing.T) {
	for path, file := range sources(t) {
		room := filepath.ToSlash(filepath.Dir(path))
		allowed, known := walls[room]
		if !known {
			t.Errorf("%s: package %s is not listed in walls", path, room)
		}
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			allowed := allowed
			if !strings.Contains(strings.Split(imported, "/")[0], ".") {
				ofStandardLibrary, isPure := pure[room]
				if !isPure {
					continue
				}
				allowed = ofStandardLibrary
			}
			if !slices.Contains(strings.Fields(allowed), wallName(imported)) {
				t.Errorf("%s may not import %s", path, imported)
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

// TestPureRoomsHaveNoClock: packages of policy get the time from their callers.
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

// TestOneInit: the module has a single init function, which catches signals.
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

// TestNothingHeavy: the product does not import packages that cost size and start-up time,
// or that wait for children.
func TestNothingHeavy(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "./cmd/lameduck")
	list.Dir = ".."
	list.Env = append(list.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, "os") {
		t.Fatalf("an odd list: %v", deps)
	}
	for _, banned := range []string{"net", "net/http", "os/exec", "crypto/tls", module + "shim/internal/testutil", module + "shim/internal/testutil/netns", module + "shim/internal/testutil/script"} {
		if slices.Contains(deps, banned) {
			t.Errorf("the product imports %s", banned)
		}
	}
}

// sources returns the product's files by their paths from the root of the repository.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	for _, dir := range []string{"cmd", "shim"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, entry fs.DirEntry, err error) error {
			if entry != nil && entry.IsDir() && path != filepath.Join("..", dir) {
				if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
					return filepath.SkipDir // another module
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
