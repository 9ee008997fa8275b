package observe

import (
	"errors"
	"net"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// fakeDumper is a dumper of given sockets, and of an error afterwards.
type fakeDumper struct {
	sockets []tcp.Socket
	err     error
	closed  bool
	asked   []uint16
}

func (f *fakeDumper) Dump(q sockdiag.Query, visit func(*tcp.Socket)) error {
	f.asked = q.Ports
	for i := range f.sockets {
		visit(&f.sockets[i])
	}
	return f.err
}

func (f *fakeDumper) Close() error { f.closed = true; return nil }

func dial(l net.Listener) (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }

// TestSourceDump: sockets that change during a dump are no error.
func TestSourceDump(t *testing.T) {
	for _, c := range []struct{ err, want error }{{nil, nil}, {sockdiag.ErrInterrupted, nil}, {errDenied, errDenied}} {
		s := source{conn: &fakeDumper{sockets: []tcp.Socket{*local(1)}, err: c.err}}
		visited := 0
		if err := s.dump(scope.Ports{80}, func(*tcp.Socket) { visited++ }); !errors.Is(err, c.want) || visited != 1 {
			t.Errorf("%v: %v, %d sockets", c.err, err, visited)
		}
	}
}

// TestSourceFallsBack: after an error of sock_diag the listeners come from /proc/net.
func TestSourceFallsBack(t *testing.T) {
	netns.Need(t)
	l := testutil.Must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	f := &fakeDumper{err: errDenied}
	s := source{conn: f}
	found, err := s.listeners(nil)
	if err != nil || s.conn != nil || !f.closed || s.name != ProcNet || s.trouble != "sock_diag: denied" || s.canFallBack() {
		t.Fatalf("%+v, %v", s, err)
	}
	has := false
	for _, listener := range found {
		has = has || listener.State == tcp.Listen && listener.Local.Port() == port
	}
	if !has {
		t.Errorf("port %d is not in %v", port, found)
	}
	visited := 0
	if err := s.dump(scope.Ports{port}, func(*tcp.Socket) { visited++ }); err != nil || visited != 1 {
		t.Errorf("%v, %d sockets", err, visited)
	}
}

// TestSourceNames: the name and the trouble of each source, as the last source fails and
// works again.
func TestSourceNames(t *testing.T) {
	s := source{conn: &fakeDumper{}, name: SockDiag}
	check := func(name, trouble string) {
		t.Helper()
		if s.name != name || s.trouble != trouble {
			t.Errorf("name %q, trouble %q; want %q, %q", s.name, s.trouble, name, trouble)
		}
	}
	s.setObservable()
	check(SockDiag, "")
	s.fallBack(errDenied)
	check(ProcNet, "sock_diag: denied")
	s.setObservable()
	check(ProcNet, "sock_diag: denied")
	s.setUnobservable(errors.New("no /proc"))
	check(None, "sock_diag: denied; no /proc")
	s.setUnobservable(errors.New("no /proc"))
	check(None, "no /proc")
	s.setObservable()
	check(ProcNet, "")
}

// TestOtherEnds: the sockets at the other ends come from the same source.
func TestOtherEnds(t *testing.T) {
	near := *local(1)
	far := tcp.Socket{Local: near.Remote, Remote: near.Local, Inode: 5}
	f := &fakeDumper{sockets: []tcp.Socket{far}}
	for name, s := range map[string]*source{"sock_diag": {conn: f}, "/proc/net": {table: []tcp.Socket{near, far}}} {
		if got := s.otherEnds([]tcp.Socket{near})[ends{near.Remote, near.Local}]; got.Inode != 5 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if len(f.asked) != 1 || f.asked[0] != near.Remote.Port() {
		t.Errorf("asked for ports %v", f.asked)
	}
}
