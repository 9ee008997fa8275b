// Package program builds lameduck for the tests of the pages and of the manifests.
package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Run builds lameduck as releases are built, in a new folder, runs the tests of m, and
// exits. use gets the folder before the tests run.
func Run(m *testing.M, root string, use func(dir string) error) {
	dir, err := os.MkdirTemp("", "check")
	if err == nil {
		err = build(root, filepath.Join(dir, "lameduck"))
	}
	if err == nil {
		err = use(dir)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

func build(root, path string) error {
	cmd := exec.Command("make", "-s", "-C", root, "build", "OUT="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build lameduck: %w\n%s", err, out)
	}
	return nil
}
