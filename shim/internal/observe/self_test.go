package observe

import (
	"fmt"
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
	// Those are deferred of which it is not known yet.
	for i, want := range []string{"0 true 3", "2 false 3", "2 false 1"} {
		s.take(trigger)
		if got := fmt.Sprint(s.snapshot.Open, s.snapshot.Incomplete, len(o.deferred)); got != want {
			t.Errorf("sample %d: %s, want %s", i, got, want)
		}
	}
	check := healthCheck(9)
	o.own.conns = append(o.own.conns, check)
	atHealth := tcp.Socket{Cookie: 9, Local: check.Target, Remote: check.Local}
	for i, s := range []tcp.Socket{ours, atHealth, theirs, local(8), {Local: serverEnd, Remote: clientEnd}} {
		if got := o.decide(&s, nil); (got == ledger.Own) != (i < 2) {
			t.Errorf("closed, %+v: side %v", s, got)
		}
	}
	if o.opens.toSelf != 1 {
		t.Errorf("%d connections to ourselves since the sample, want one", o.opens.toSelf)
	}
}
