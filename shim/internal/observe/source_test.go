package observe

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestSourceListsAgain: a failed listing of the listeners is repeated at once, and has no
// socket twice.
func TestSourceListsAgain(t *testing.T) {
	for failures, again := range map[int]bool{1: true, maxFailures - 1: true, maxFailures: false} {
		f := &fakeDumper{sockets: []tcp.Socket{listenerOn(80, 0)}, errs: slices.Repeat([]error{unix.ENOBUFS}, failures)}
		s := source{dump: f.Dump, root: "/no/such"}
		list, err := s.list(listenStates)
		if (err == nil) != again || s.isTable() == again || again && (len(list) != 1 || s.failures != 0) {
			t.Errorf("after %d failures: %v, %v, %q", failures, list, err, s.trouble())
		}
	}
}
