package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestSourceExhausted: failures in a row change the source, some errors at once.
func TestSourceExhausted(t *testing.T) {
	errs := map[string]error{"-": nil, "interrupted": sockdiag.ErrInterrupted}
	for _, errno := range []unix.Errno{unix.ENOBUFS, unix.EBUSY, unix.EPERM, unix.EACCES, unix.ENOENT, unix.ETIMEDOUT} {
		errs[unix.ErrnoName(errno)] = fmt.Errorf("cannot list IPv4 sockets: %w", errno)
	}
	for _, cells := range tables.Rows(`
		ENOBUFS EBUSY               | stays
		ENOBUFS EBUSY interrupted   | exhausted
		ENOBUFS EBUSY - interrupted | stays
		EPERM                       | exhausted
		- EACCES                    | exhausted
		ENOENT                      | exhausted
		ETIMEDOUT                   | exhausted
	`) {
		f := &fakeDumper{sockets: []tcp.Socket{local(1)}}
		s := source{conn: f}
		var last error
		visited := 0
		names := strings.Fields(cells[0])
		for _, name := range names {
			f.errs = []error{errs[name]}
			last = s.each(sockdiag.Query{States: openStates}, func(*tcp.Socket) { visited++ })
		}
		if got := s.exhausted(last); got != (cells[1] == "exhausted") || visited != len(names) {
			t.Errorf("%s: exhausted is %v, %d sockets", cells[0], got, visited)
		}
	}
}

// TestSourceListsAgain: a failed listing of the listeners is repeated at once, and has no
// socket twice.
func TestSourceListsAgain(t *testing.T) {
	for failures, again := range map[int]bool{1: true, maxFailures - 1: true, maxFailures: false} {
		f := &fakeDumper{sockets: []tcp.Socket{listenerOn(80, 0)}, errs: slices.Repeat([]error{unix.ENOBUFS}, failures)}
		s := source{conn: f, root: "/no/such"}
		list, err := s.list(listenStates)
		if (err == nil) != again || (s.conn != nil) != again || again && (len(list) != 1 || s.failures != 0) {
			t.Errorf("after %d failures: %v, %v, %q", failures, list, err, s.trouble())
		}
	}
}
