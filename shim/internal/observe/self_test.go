package observe

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
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
	for i, want := range []struct{ open, deferred, decided int }{{0, 3, 0}, {2, 3, 2}, {2, 1, 2}} {
		s.take(trigger)
		got := s.snapshot
		decided := 0
		for _, s := range f.sockets[:3] {
			if _, is := o.ledger.Decided(&s); is {
				decided++
			}
		}
		if got.Open != want.open || len(o.deferred) != want.deferred || decided != want.decided {
			t.Errorf("sample %d: %+v, %d deferred, %d decided", i, got.Sample, len(o.deferred), decided)
		}
		if got.Incomplete != (want.open == 0) {
			t.Errorf("sample %d: incomplete is %v", i, got.Incomplete)
		}
	}
	check := healthCheck(9)
	o.own.conns = append(o.own.conns, check)
	excluded := []tcp.Socket{ours, {Cookie: 9, Local: check.Target, Remote: check.Local}}
	counted := []tcp.Socket{theirs, local(8), {Local: serverEnd, Remote: clientEnd}}
	for i, s := range slices.Concat(excluded, counted) {
		if got := o.sideOfClosed(&s); (got == ledger.Own) != (i < len(excluded)) {
			t.Errorf("closed, %+v: side %v", s, got)
		}
	}
	if o.opens.toSelf != 1 {
		t.Errorf("%d connections to ourselves since the sample, want one", o.opens.toSelf)
	}
}
