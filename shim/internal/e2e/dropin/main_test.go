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

// onEachCall is onEachInit for a call such as "NAME=value tini -s": variables, the init and
// its flags.
func onEachCall(t *testing.T, call string, test func(t *testing.T, s box.Setup, flags string)) {
	var s box.Setup
	words := strings.Fields(call)
	for strings.Contains(words[0], "=") {
		s.Env, words = append(s.Env, words[0]), words[1:]
	}
	t.Run(strings.ReplaceAll(call, "=", " "), func(t *testing.T) {
		onEachInit(t, words[0], func(t *testing.T, init string) {
			own := s
			own.Init = init
			test(t, own, strings.Join(words[1:], " "))
		})
	})
}

// isLameduck reports whether init is a link to lameduck.
func isLameduck(init string) bool {
	path, err := filepath.EvalSymlinks(init)
	return err == nil && path == box.Binary
}

// modes are the calls of inits that change how the init treats processes and signals.
var modes = []string{"lameduck --", "tini -s --", "tini -s -g --", "dumb-init --", "dumb-init -c --", "catatonit --",
	"catatonit -g --"}
