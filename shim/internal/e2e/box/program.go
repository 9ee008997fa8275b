package box

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Assemble returns the program that a file of assembly language for amd64 makes: small to fork,
// and without a loader.
func Assemble(t *testing.T, source string) (path string) {
	t.Helper()
	Needs(t, "gcc")
	if runtime.GOARCH != "amd64" {
		t.Skip("no assembly for ", runtime.GOARCH)
	}
	path = filepath.Join(testutil.Must(filepath.EvalSymlinks(t.TempDir())), "program")
	if out, err := exec.Command("gcc", "-nostdlib", "-static", "-o", path, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}
