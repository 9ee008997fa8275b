package observe

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestObserverFallsBack: a source that fails three times in a row, in two samples, which are incomplete, and then as
// listeners are listed, is replaced by /proc/net. Open connections are not new to the next source, which shows no
// requests. Without any source nothing can be observed, and the reasons are named.
func TestObserverFallsBack(t *testing.T) {
	s, f, e := fakeSampler(kept(99))
	s.observer.source.root = procRoot(t)
	s.take(trigger)
	f.errs = slices.Repeat([]error{errDenied}, 2*maxFailures)
	for i := range maxFailures + 1 {
		if i == maxFailures-1 {
			s.observer.FindLate()
		}
		s.take(trigger.Add(time.Duration(i+1) * time.Second))
		got := s.snapshot
		if i < maxFailures-1 {
			if got.Observer != report.SockDiag || got.Trouble != "" || !got.Incomplete || !got.Requests.Stale || e.closed {
				t.Errorf("sample %d: %+v", i, got)
			}
			continue
		}
		if got.Observer != report.ProcNet || got.Trouble != "sock_diag: denied" || !e.closed || s.observer.events.reader != nil {
			t.Errorf("sample %d: %s, %s", i, got.Observer, got.Trouble)
		}
		if got.Open != 1 || got.Incomplete || got.Accepted != 0 || got.More || !got.Requests.Stale {
			t.Errorf("sample %d: %+v, requests %+v", i, got.Sample, got.Requests)
		}
	}
	s.observer.source.root = "/no/such"
	s.take(trigger)
	const trouble = "sock_diag: denied; open /no/such/net/tcp: no such file or directory"
	if got := s.snapshot; got.State != stop.Unobservable || got.Observer != report.NoSource || got.Trouble != trouble {
		t.Errorf("%v by %s, %s; want %s", got.State, got.Observer, got.Trouble, trouble)
	}
}

// TestObserverReturns: a request that is in flight when sock_diag fails holds, until MaxSilence. The source
// is tried again at doubling intervals, and when it works knows the connections.
func TestObserverReturns(t *testing.T) {
	waiting := kept(99)
	waiting.Info.Received += 100
	waiting.Info.LastReceived = time.Second
	s, f, _ := fakeSampler(waiting)
	o := s.observer
	o.source.root = procRoot(t)
	var now time.Duration
	want := func(end time.Duration, want string) {
		t.Helper()
		for ; now < end; now += usual.Poll {
			s.take(trigger.Add(now))
		}
		got := s.snapshot
		found := fmt.Sprintf("%s, %d of %d in flight", got.Observer, got.InFlight, got.Open)
		isGood := (got.Trouble == "") == (got.Observer == report.SockDiag)
		if found != want || got.State != stop.Busy || got.Accepted != 0 || got.More || !isGood {
			t.Errorf("at %v %s, want %s: %+v", now, found, want, got)
		}
	}
	var tries []time.Duration
	o.source.dump = func(states sockdiag.States, ports tcp.Ports, visit func(*tcp.Socket)) error {
		if o.source.isTable() {
			tries = append(tries, now)
		}
		return f.Dump(states, ports, visit)
	}
	want(time.Second, "sock_diag, 1 of 1 in flight")
	f.errs = slices.Repeat([]error{errDenied}, maxFailures+3)
	want(1500*time.Millisecond, "sock_diag, 1 of 1 in flight")
	want(1750*time.Millisecond, "/proc/net, 1 of 1 in flight")
	want(8*time.Second, "/proc/net, 1 of 1 in flight")
	f.sockets[0].Info.LastReceived = 8 * time.Second
	want(11*time.Second, "sock_diag, 1 of 1 in flight")
	if want := []time.Duration{1.75e9, 2.75e9, 4.75e9, 8.75e9}; !slices.Equal(tries, want) || o.events.reader == nil {
		t.Errorf("tried after %v, want %v", tries, want)
	}
	f.sockets[0].Info.Sent += 100
	f.sockets[0].Info.LastSent = 0
	want(12*time.Second, "sock_diag, 0 of 1 in flight")
}

// TestObserverFailsOnce: a failed dump costs only its own sample, which shows no lull, meets no
// condition, and says nothing about the source, as do several that do not follow each other. Events
// that arrived meanwhile count; connections that the next sample shows are not new.
func TestObserverFailsOnce(t *testing.T) {
	s, f, e := fakeSampler()
	for i, sample := range tables.Read[struct {
		Dumps string
		Ended int // connections
		After time.Duration
		Found string
	}](`
		# a dump | connections ended | after the trigger | the state and the connections accepted
		works | 0 | 0s  | busy 0
		works | 0 | 3s  | met 0
		fails | 1 | 3s  | busy 1
		works | 0 | 3s  | busy 1
		fails | 0 | 3s  | busy 1
		fails | 0 | 3s  | busy 1
		works | 0 | 60s | met 1
	`) {
		fails := sample.Dumps == "fails"
		f.errs, f.sockets, e.ended = nil, []tcp.Socket{kept(99)}, sample.Ended
		if fails {
			f.errs, f.sockets = []error{unix.ENOBUFS}, nil
		}
		s.take(trigger.Add(sample.After))
		got := s.snapshot
		if fmt.Sprint(got.State, got.Accepted) != sample.Found || got.Requests.Stale != fails {
			t.Errorf("sample %d: %+v, want %+v", i, got, sample)
		}
		if got.Observer != report.SockDiag || got.Trouble != "" || e.closed {
			t.Errorf("sample %d: %s, %s", i, got.Observer, got.Trouble)
		}
	}
}

// TestSampleAllocations: the allocations of a sample do not depend on the number of connections, with
// or without cookies and tcp_info.
func TestSampleAllocations(t *testing.T) {
	s, f, _ := fakeSampler()
	count := func() float64 {
		s.take(trigger)
		return testing.AllocsPerRun(20, func() { s.take(trigger) })
	}
	few := count()
	for i := range 300 {
		sock := kept(uint64(i % 3 * (i + 1)))
		sock.Remote, sock.HasInfo = netip.AddrPortFrom(clientEnd.Addr(), uint16(i)), i%2 == 0
		f.sockets = append(f.sockets, sock)
	}
	if many := count(); many > few+50 || s.snapshot.Open != 300 {
		t.Errorf("%v allocations with no connection, %v with %d", few, many, s.snapshot.Open)
	}
}
