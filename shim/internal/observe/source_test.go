package observe

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// fakeDumper is a dumper of given sockets, and of an error afterwards.
type fakeDumper struct {
	sockets []tcp.Socket
	err     error
	fails   int // how many dumps return err; 0: all
	dumps   int
	closed  bool
	asked   []uint16
}

func (f *fakeDumper) Dump(q sockdiag.Query, visit func(*tcp.Socket)) error {
	f.asked = q.Ports
	f.dumps++
	for i := range f.sockets {
		visit(&f.sockets[i])
	}
	if f.fails > 0 && f.dumps > f.fails {
		return nil
	}
	return f.err
}

func (f *fakeDumper) Close() error { f.closed = true; return nil }

func dial(l net.Listener) (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }

// TestSourceExhausted: failures in a row change the source, some errors at once.
func TestSourceExhausted(t *testing.T) {
	names := map[string]error{"-": nil, "EINTR": unix.EINTR, "interrupted": sockdiag.ErrInterrupted}
	for _, errno := range []unix.Errno{unix.ENOBUFS, unix.EBUSY, unix.EPERM, unix.EACCES, unix.ENOENT, unix.ETIMEDOUT, unix.ENOMEM} {
		names[unix.ErrnoName(errno)] = fmt.Errorf("cannot list IPv4 sockets: %w", errno)
	}
	for _, cells := range script.Rows(`
		ENOBUFS                        | stays
		ENOBUFS EBUSY                  | stays
		ENOBUFS EINTR interrupted      | exhausted
		ENOBUFS EINTR - EBUSY          | stays
		interrupted                    | stays
		EPERM                          | exhausted
		- EACCES                       | exhausted
		ENOENT                         | exhausted
		ETIMEDOUT                      | exhausted
		ENOMEM - ENOMEM ENOMEM ENOMEM  | exhausted
	`) {
		f := &fakeDumper{sockets: []tcp.Socket{*local(1)}}
		s := source{conn: f}
		var last error
		visited := 0
		errs := strings.Fields(cells[0])
		for _, name := range errs {
			f.err = names[name]
			last = s.each(sockdiag.Query{Ports: scope.Ports{80}}, func(*tcp.Socket) { visited++ })
			if !errors.Is(last, f.err) {
				t.Errorf("%s: %v", cells[0], last)
			}
		}
		if got := s.exhausted(last); got != (cells[1] == "exhausted") || visited != len(errs) {
			t.Errorf("%s: exhausted is %v, %d sockets", cells[0], got, visited)
		}
	}
}

// TestSourceListsAgain: a failed listing of the listeners is repeated at once, and has no
// socket twice.
func TestSourceListsAgain(t *testing.T) {
	for fails, again := range map[int]bool{1: true, maxFailures - 1: true, maxFailures: false} {
		f := &fakeDumper{sockets: []tcp.Socket{*local(1)}, err: unix.ENOBUFS, fails: fails}
		s := source{conn: f, root: "/no/such"}
		list, err := s.list(listenStates)
		if (err == nil) != again || (s.conn != nil) != again || again && (len(list) != 1 || s.failures != 0) {
			t.Errorf("after %d failures: %v, %v, %q", fails, list, err, s.trouble())
		}
	}
}

// TestSourceNames: the name and the trouble of each source, as the last source fails and
// works again.
func TestSourceNames(t *testing.T) {
	o := observer{source: source{conn: &fakeDumper{}}}
	check := func(name, trouble string) {
		t.Helper()
		if o.name() != name || o.source.trouble() != trouble {
			t.Errorf("name %q, trouble %q; want %q, %q", o.name(), o.source.trouble(), name, trouble)
		}
	}
	check("", "")
	o.scope.Ports = scope.Ports{80}
	check(SockDiag, "")
	o.source.fallBack(errDenied)
	check(ProcNet, "sock_diag: denied")
	o.source.failed = errors.New("no /proc")
	check(None, "sock_diag: denied; no /proc")
	o.source.failed = nil
	check(ProcNet, "sock_diag: denied")
	o.source = source{failed: errors.New("no /proc")}
	check(None, "no /proc")
}

// TestOtherEnds: the sockets at the other ends are those with the remote ports.
func TestOtherEnds(t *testing.T) {
	near := *local(1)
	f := &fakeDumper{sockets: []tcp.Socket{{Local: near.Remote, Remote: near.Local, Inode: 5}}}
	o := observer{source: source{conn: f}, deferred: []tcp.Socket{listenerOn(80, 0), near}}
	found, err := o.otherEnds()
	if got := found[traffic.ConnKey(near.Remote, near.Local)]; got.Inode != 5 || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if len(f.asked) != 1 || f.asked[0] != near.Remote.Port() {
		t.Errorf("asked for ports %v", f.asked)
	}
}
