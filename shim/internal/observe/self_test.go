package observe

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestSelf: a connection counts unless the other end is our socket. While the other ends cannot be
// looked up, a sample is incomplete. Decisions hold in later samples, except on a connection
// without another end.
func TestSelf(t *testing.T) {
	far := func(near tcp.Socket, inode uint32) tcp.Socket {
		return tcp.Socket{State: tcp.Established, Local: near.Remote, Remote: near.Local, Inode: inode}
	}
	ours, theirs, unknown := local(1), local(2), local(3)
	s, f, _ := fakeSampler(ours, theirs, unknown, far(ours, 5), far(theirs, 6))
	o := s.observer
	o.scope.Learn(scope.Inodes{5: true})
	f.errs = []error{nil, unix.ENOBUFS}
	for i, want := range []struct{ open, deferred, ours, decided int }{{0, 3, 0, 0}, {2, 3, 1, 2}, {2, 1, 1, 2}} {
		s.take(trigger)
		got := s.snapshot
		if got.Open != want.open || len(o.deferred) != want.deferred || o.self.accepted != want.ours || len(o.self.isSelf) != want.decided {
			t.Errorf("sample %d: %+v, %d deferred, %+v", i, got.Sample, len(o.deferred), o.self)
		}
		if got.Incomplete != (want.open == 0) {
			t.Errorf("sample %d: incomplete is %v", i, got.Incomplete)
		}
	}
	proxied := check(9)
	o.proxied.conns = append(o.proxied.conns, proxied)
	for name, c := range map[string]struct {
		socket   tcp.Socket
		excluded bool
		accepted int
	}{
		"ours":       {ours, true, 1},
		"theirs":     {theirs, false, 1},
		"proxied":    {tcp.Socket{Cookie: 9, Local: proxied.Target, Remote: proxied.Local}, true, 2},
		"never seen": {local(8), false, 1},
		"from afar":  {tcp.Socket{Local: serverEnd, Remote: clientEnd}, false, 1},
	} {
		o.self.accepted = 1
		if got := o.wasSelf(&c.socket); got != c.excluded || o.self.accepted != c.accepted {
			t.Errorf("closed, %s: excluded %v, accepted %d", name, got, o.self.accepted)
		}
	}
}
