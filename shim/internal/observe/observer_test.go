package observe

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestObserverFallsBack: a source that fails during a sample is replaced at once by
// /proc/net if the failure is permanent, and else after three samples in a row, which are
// incomplete. Open connections are not new to the next source.
func TestObserverFallsBack(t *testing.T) {
	for _, c := range []struct {
		err    error
		sample int // the first from the next source
	}{{unix.EPERM, 0}, {unix.ENOBUFS, maxFailures - 1}} {
		start := time.Now()
		sampler := withConn(t, start)
		o := sampler.observer
		o.source.conn.Close()
		o.source.conn = &fakeDumper{err: c.err}
		for i := range 5 {
			sampler.sample(start.Add(time.Duration(i+1) * time.Second))
			if i < c.sample {
				if o.name() != SockDiag || o.source.trouble() != "" || !o.events.reporting() {
					t.Errorf("%v, sample %d: %s, %s", c.err, i, o.name(), o.source.trouble())
				}
				continue
			}
			summary := sampler.tracker.Sample()
			if o.name() != ProcNet || o.source.trouble() != "sock_diag: "+c.err.Error() || o.events.reporting() || summary.Open != 1 || summary.Accepted != 0 || summary.More {
				t.Errorf("%v, sample %d: %s, %s; %+v", c.err, i, o.name(), o.source.trouble(), summary)
			}
		}
	}
}

// withConn returns a sampler with a connection, after the first sample.
func withConn(t *testing.T, start time.Time) *Sampler {
	t.Helper()
	l, sampler := listening(t, start)
	conn := testutil.Must(dial(l))
	t.Cleanup(func() { conn.Close() })
	server := testutil.Must(l.Accept())
	t.Cleanup(func() { server.Close() })
	sampler.sample(start)
	if o := sampler.observer; o.name() != SockDiag || !o.events.reporting() {
		t.Skipf("no sock_diag: %s", o.source.trouble())
	}
	return sampler
}

// failingOnce is a dumper of which one dump fails.
type failingOnce struct {
	dumper
	before int // good dumps before that
	err    error
}

func (f *failingOnce) Dump(q sockdiag.Query, visit func(*tcp.Socket)) error {
	f.before--
	if f.before == -1 {
		return f.err
	}
	return f.dumper.Dump(q, visit)
}

// TestObserverFailsOnce: one failed dump costs only its own sample, which meets no
// condition. Events that arrived meanwhile count.
func TestObserverFailsOnce(t *testing.T) {
	start := time.Now()
	l, sampler := listening(t, start)
	sampler.cfg.Gate.Until = stop.Quiet
	sampler.sample(start)
	o := sampler.observer
	if o.name() != SockDiag || !o.events.reporting() {
		t.Skipf("no sock_diag: %s", o.source.trouble())
	}
	later := func(d time.Duration) stop.TrafficState { return sampler.sample(start.Add(usual.QuietFor + d)) }
	if got := later(0); got != stop.ConditionMet {
		t.Fatalf("without traffic: %v", got)
	}
	reader := o.events.reader
	o.source.conn = &failingOnce{o.source.conn, 0, unix.ENOBUFS}
	client := testutil.Must(dial(l))
	server := testutil.Must(l.Accept())
	server.Write([]byte("x"))
	server.Close()
	client.Close()
	for began := time.Now(); len(o.events.closed) == 0 && time.Since(began) < testutil.Patience; {
		o.events.wait(time.Now().Add(10 * time.Millisecond))
	}
	if got := later(usual.Poll); got != stop.Busy || o.events.reader != reader || o.name() != SockDiag || o.source.trouble() != "" {
		t.Errorf("a failed dump: %v, %s, %q", got, o.name(), o.source.trouble())
	}
	if n := sampler.tracker.Sample().Accepted; n != 1 {
		t.Errorf("%d connections, want the closed connection", n)
	}
	if got := later(20 * usual.QuietFor); got != stop.ConditionMet {
		t.Errorf("afterwards: %v", got)
	}
}

// TestObserverUnobservable: without any source no condition holds, and the reasons are named.
func TestObserverUnobservable(t *testing.T) {
	start := time.Now()
	_, sampler := listening(t, start)
	o := sampler.observer
	o.source.close()
	o.source.root = "/no/such"
	if got := sampler.sample(start); got != stop.Unobservable || o.name() != None || o.source.trouble() == "" {
		t.Errorf("%v, %s: %s", got, o.name(), o.source.trouble())
	}
	o.source.root = ""
	if got := sampler.sample(start.Add(time.Second)); got != stop.Busy || o.name() != ProcNet || o.source.trouble() != "" {
		t.Errorf("%v, %s: %s", got, o.name(), o.source.trouble())
	}
}

// TestObserverSelfUnknown: a connection is no new connection while the other end cannot be
// looked up, and the sample is incomplete.
func TestObserverSelfUnknown(t *testing.T) {
	start := time.Now()
	sampler := withConn(t, start)
	o := sampler.observer
	sampler.sample(start) // the kernel counted the connection after the trigger
	clear(o.self.isSelf)
	o.source.conn = &failingOnce{o.source.conn, 1, unix.ENOBUFS}
	for i, decided := range []int{0, 1} {
		got := sampler.sample(start.Add(usual.QuietFor))
		if (got == stop.ConditionMet) != (decided == 1) || len(o.self.isSelf) != decided || sampler.tracker.Sample().Accepted != 0 {
			t.Errorf("sample %d: %v, %d decisions", i, got, len(o.self.isSelf))
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
