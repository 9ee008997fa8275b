package observe

import (
	"net"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestObserverFallsBack: a source that fails during a sample is replaced at once.
// Open connections are not new to the next source.
func TestObserverFallsBack(t *testing.T) {
	start := time.Now()
	l, sampler := listening(t, start)
	conn := testutil.Must(dial(l))
	defer conn.Close()
	defer testutil.Must(l.Accept()).Close()
	sampler.sample(start)
	o := sampler.observer
	if o.source.name != SockDiag || !o.events.reporting() {
		t.Skipf("no sock_diag: %s", o.source.trouble)
	}
	o.source.conn.Close()
	o.source.conn = &fakeDumper{err: errDenied}
	for i := range 3 {
		sampler.sample(start.Add(time.Duration(i+1) * time.Second))
		summary := sampler.tracker.Summary()
		if o.source.name != ProcNet || o.source.trouble != "sock_diag: denied" || o.events.reporting() || summary.Open != 1 || summary.Accepted != 0 || summary.More {
			t.Errorf("sample %d: %s, %s; %+v", i, o.source.name, o.source.trouble, summary)
		}
	}
}

// TestObserverUnobservable: without any source nothing holds, and the reasons are named.
func TestObserverUnobservable(t *testing.T) {
	start := time.Now()
	_, sampler := listening(t, start)
	o := sampler.observer
	o.source.close()
	o.source.root = "/no/such"
	if got := sampler.sample(start); got != stop.Unobservable || o.source.name != None || o.source.trouble == "" {
		t.Errorf("%v, %s: %s", got, o.source.name, o.source.trouble)
	}
	o.source.root = ""
	if got := sampler.sample(start.Add(time.Second)); got != stop.Busy || o.source.name != ProcNet || o.source.trouble != "" {
		t.Errorf("%v, %s: %s", got, o.source.name, o.source.trouble)
	}
}

// TestObserverSelf: a connection of the container to itself does not count; the same
// connection counts if the other end is not the container's.
func TestObserverSelf(t *testing.T) {
	for _, ours := range []bool{false, true} {
		start := time.Now()
		l, sampler := listening(t, start)
		o := sampler.observer
		conn := testutil.Must(dial(l))
		defer conn.Close()
		defer testutil.Must(l.Accept()).Close()
		if ours {
			inode := testutil.Must(inodeOf(conn.(*net.TCPConn)))
			o.scope.Learn(map[uint32]struct{}{inode: {}})
		}
		sampler.sample(start)
		if open := sampler.tracker.Summary().Open; (open == 0) != ours || (o.self.selfAccepted == 1) != ours {
			t.Errorf("ours %v: %d open, %d to ourselves", ours, open, o.self.selfAccepted)
		}
	}
}

// TestSampleAllocations: the allocations of a sample do not depend on the number of
// connections.
func TestSampleAllocations(t *testing.T) {
	start := time.Now()
	l, sampler := listening(t, start)
	count := func() float64 {
		sampler.sample(start)
		return testing.AllocsPerRun(20, func() { sampler.sample(start) })
	}
	few := count()
	for range 300 {
		conn := testutil.Must(dial(l))
		t.Cleanup(func() { conn.Close() })
		server := testutil.Must(l.Accept())
		t.Cleanup(func() { server.Close() })
	}
	if many := count(); many > few+50 {
		t.Errorf("%v allocations with no connection, %v with 300", few, many)
	}
}
