package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what is found into the golden files")

// The test binary is lameduck-lint too.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"lameduck-lint": main})
}

// TestScripts runs testdata/*.txtar: for each rule files that it fires on, with what
// is said, and near misses.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", UpdateScripts: *update})
}

// root is the checkout, and lameduck the binary that is built from it.
const root = "../.."

func lameduck(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lameduck")
	build := exec.Command("make", "-s", "-C", root, "build", "OUT="+path)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		t.Fatal("cannot build lameduck: ", err)
	}
	return path
}
