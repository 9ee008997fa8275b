// Package dropin_test tests lameduck under the names of other inits. The tests run on the
// original inits too, where installed: a test that the original fails has a wrong
// expectation. Intended differences are named in the tests.
package dropin_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

var originals = flag.Bool("rivals", true,
	"run the tests of the drop-in names on the installed tini, dumb-init and catatonit too")

func TestMain(m *testing.M) { box.Main(m, nil) }

// onEachInit runs a test on lameduck under an init's name, and on the original init.
func onEachInit(t *testing.T, name string, test func(t *testing.T, init string)) {
	t.Run(name+" by lameduck", func(t *testing.T) {
		t.Parallel()
		test(t, link(t, name))
	})
	t.Run(name+" itself", func(t *testing.T) {
		t.Parallel()
		if !*originals {
			t.Skip("-rivals=false")
		}
		box.Needs(t, name)
		test(t, testutil.Must(exec.LookPath(name)))
	})
}

// link returns the path of a link to lameduck with another name.
func link(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(testutil.Must(os.MkdirTemp("", "init")), name)
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(path)) })
	testutil.Must(0, os.Symlink(box.Binary, path))
	return path
}

// askTTY makes a shell print whether the shell has a controlling terminal.
const askTTY = `if true 2>/dev/null </dev/tty; then echo "$0: yes"; else echo "$0: no"; fi`

// sessions plays the rows of a table on each of their "inits", INIT in a row.
func sessions(t *testing.T, table string) {
	for _, c := range box.Table(table) {
		for name := range strings.FieldsSeq(c["inits"]) {
			onEachInit(t, name, func(t *testing.T, init string) {
				own := box.Row{"env": "'ASK=" + askTTY + "'"}
				for column, cell := range c {
					own[column] = strings.ReplaceAll(cell, "INIT", init)
				}
				own.Play(t, map[string][]string{"SHELL": box.Shell})
			})
		}
	}
}

// isLameduck reports whether init is a link to lameduck.
func isLameduck(init string) bool {
	path, err := filepath.EvalSymlinks(init)
	return err == nil && path == box.Binary
}
