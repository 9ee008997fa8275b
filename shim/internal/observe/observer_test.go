package observe

import (
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// realSampler returns a sampler of a listener, and a function that adds a connection.
func realSampler(t *testing.T, start time.Time) (s *Sampler, connect func()) {
	netns.Need(t)
	l := testutil.Must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { l.Close() })
	s = newSampler(config(start, uint16(l.Addr().(*net.TCPAddr).Port)), nil)
	s.scan()
	if s.observer.name() != SockDiag || !s.observer.events.reporting() {
		t.Skipf("no sock_diag: %s", s.observer.source.trouble())
	}
	t.Cleanup(func() {
		s.observer.source.close()
		s.observer.events.close()
	})
	return s, func() {
		client := testutil.Must(net.Dial("tcp", l.Addr().String()))
		server := testutil.Must(l.Accept())
		t.Cleanup(func() {
			client.Close()
			server.Close()
		})
	}
}

// TestObserverFallsBack: a source that fails during a sample is replaced at once by
// /proc/net if the failure is permanent, and else after three samples in a row, which are
// incomplete. Open connections are not new to the next source.
func TestObserverFallsBack(t *testing.T) {
	for err, incomplete := range map[error]int{unix.EPERM: 0, unix.ENOBUFS: maxFailures - 1} {
		start := time.Now()
		s, connect := realSampler(t, start)
		connect()
		s.take(start)
		o := s.observer
		o.source.conn.Close()
		o.source.conn = &fakeDumper{errs: slices.Repeat([]error{err}, maxFailures)}
		for i := range maxFailures + 1 {
			s.take(start.Add(time.Duration(i+1) * time.Second))
			got := s.snapshot
			if i < incomplete {
				if got.Observer != SockDiag || got.Trouble != "" || !got.Incomplete || !o.events.reporting() {
					t.Errorf("%v, sample %d: %+v", err, i, got)
				}
				continue
			}
			if got.Observer != ProcNet || got.Trouble != "sock_diag: "+err.Error() || o.events.reporting() {
				t.Errorf("%v, sample %d: %s, %s", err, i, got.Observer, got.Trouble)
			}
			if got.Open != 1 || got.Accepted != 0 || got.More {
				t.Errorf("%v, sample %d: %+v", err, i, got.Sample)
			}
		}
	}
}

// TestObserverFailsOnce: one failed dump costs only its own sample, which shows no lull, meets no
// condition, and says nothing about the source. Events that arrived meanwhile count; connections
// that the next sample shows are not new.
func TestObserverFailsOnce(t *testing.T) {
	kept := tcp.Socket{State: tcp.Established, Local: serverEnd, Remote: clientEnd, Cookie: 99, Inode: 1, HasInfo: true}
	kept.Info = tcp.Info{Received: 300, Sent: 600, LastReceived: 2 * time.Hour, LastSent: time.Hour, LastAcked: time.Hour}
	s, f, e := fakeSampler(kept)
	for i, sample := range []struct {
		err      error
		ended    int // connections
		after    time.Duration
		state    stop.TrafficState
		accepted int
	}{
		{nil, 0, 0, stop.Busy, 0},
		{nil, 0, usual.QuietFor, stop.ConditionMet, 0},
		{unix.ENOBUFS, 1, usual.QuietFor, stop.Busy, 1},
		{nil, 0, usual.QuietFor, stop.Busy, 1},
		{nil, 0, 20 * usual.QuietFor, stop.ConditionMet, 1},
	} {
		failed := sample.err != nil
		f.errs, f.sockets, e.ended = nil, []tcp.Socket{kept}, sample.ended
		if failed {
			f.errs, f.sockets = []error{sample.err}, nil
		}
		s.take(trigger.Add(sample.after))
		got := s.snapshot
		if got.State != sample.state || got.Accepted != sample.accepted || got.Requests.Stale != failed {
			t.Errorf("sample %d: %+v, want %+v", i, got, sample)
		}
		if got.Observer != SockDiag || got.Trouble != "" || e.closed {
			t.Errorf("sample %d: %s, %s", i, got.Observer, got.Trouble)
		}
	}
}

// TestObserverUnobservable: without any source no condition holds, and the reasons are named.
// Requests are known by sock_diag alone.
func TestObserverUnobservable(t *testing.T) {
	s, _, _ := fakeSampler()
	const denied, denials = "sock_diag: denied", `sock_diag: denied; cannot open "/no/such/net/tcp": no such file or directory`
	for _, step := range []struct {
		change            func(o *observer)
		state             stop.TrafficState
		observer, trouble string
	}{
		{func(o *observer) {}, stop.ConditionMet, SockDiag, ""},
		{func(o *observer) { o.source.fallBack(errDenied) }, stop.ConditionMet, ProcNet, denied},
		{func(o *observer) { o.source.root = "/no/such" }, stop.Unobservable, None, denials},
		{func(o *observer) { o.source.root = "" }, stop.ConditionMet, ProcNet, denied},
		{func(o *observer) { o.scope.Ports = nil }, stop.NoListeners, ProcNet, denied},
		{func(o *observer) { o.scope.UDP = []uint16{53} }, stop.UDPOnly, ProcNet, denied},
		{func(o *observer) { o.scope.Complete = false }, stop.Unobservable, ProcNet, denied},
		{func(o *observer) { o.source = source{conn: &fakeDumper{}} }, stop.Unobservable, "", ""},
		{func(o *observer) { o.scope = scope.Scope{Complete: true, Unix: []string{"/a"}} }, stop.Unseen, "", ""},
	} {
		step.change(s.observer)
		s.take(trigger.Add(usual.QuietFor))
		got := s.snapshot
		if got.State != step.state || got.Observer != step.observer || got.Trouble != step.trouble {
			t.Errorf("%v by %q, %q; want %v by %q, %q", got.State, got.Observer, got.Trouble, step.state, step.observer, step.trouble)
		}
		if got.Requests.Stale != (step.observer != SockDiag) {
			t.Errorf("%v by %q: %+v", got.State, got.Observer, got.Requests)
		}
	}
}

// TestSampleAllocations: the allocations of a sample do not depend on the number of
// connections.
func TestSampleAllocations(t *testing.T) {
	start := time.Now()
	s, connect := realSampler(t, start)
	count := func() float64 {
		s.take(start)
		return testing.AllocsPerRun(20, func() { s.take(start) })
	}
	few := count()
	for range 300 {
		connect()
	}
	if many := count(); many > few+50 || s.snapshot.Open != 300 {
		t.Errorf("%v allocations with no connection, %v with %d", few, many, s.snapshot.Open)
	}
}
