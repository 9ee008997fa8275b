package observe

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// kept returns a connection that a client keeps, with a response 10 ms ago. If a request is
// in flight, the request came 5 ms ago.
func kept(cookie uint64, inFlight bool) tcp.Socket {
	s := tcp.Socket{State: tcp.Established, Local: serverEnd, Remote: netip.AddrPortFrom(clientEnd.Addr(), uint16(4000+cookie)),
		Cookie: cookie, Inode: 1, HasInfo: true}
	const ms = time.Millisecond
	s.Info = tcp.Info{Received: 300, Sent: 600, Segments: 3, SentSegments: 3, LastReceived: 20 * ms, LastSent: 10 * ms, LastAcked: 9 * ms}
	if inFlight {
		s.Info.LastReceived = 5 * ms
	}
	return s
}

// keptBy returns a sampler of these sockets, two seconds after the trigger, after a full
// sample.
func keptBy(sockets ...tcp.Socket) (*Sampler, *fakeDumper) {
	f := &fakeDumper{sockets: sockets}
	cfg := Config{Start: time.Now().Add(-2 * time.Second), Traffic: usual, Gate: stop.Gate{Until: stop.Quiet, Ceiling: time.Minute}}
	s := newSampler(cfg, make(chan Snapshot, 1))
	s.cfg.Wake = func() {}
	s.observer = &observer{
		source:   source{conn: f},
		late:     late{seen: map[uint32]bool{1: true}},
		scope:    scope.Scope{Ports: scope.Ports{serverEnd.Port()}, Complete: true},
		self:     self{isSelf: map[uint64]bool{}},
		pingpong: pingpongCache{readTable: procfs.Root("/no/such").PingPong, entries: map[uint64]pingpongEntry{}},
	}
	initial, err := s.observer.counters()
	s.observer.opens.begin(initial, err, false)
	s.take(time.Now())
	f.dumps = 0
	return s, f
}

// TestTakeRequests: a sample shows the requests at risk.
func TestTakeRequests(t *testing.T) {
	s, _ := keptBy(kept(1, false), kept(2, true), kept(3, true))
	if got, want := s.snapshot.Requests, (stop.Requests{Active: true, AtRisk: 2}); got != want || s.snapshot.State != stop.Busy {
		t.Errorf("%+v, %v; want %+v", got, s.snapshot.State, want)
	}
}

// TestTakeIncomplete: a sample that fails shows no lull, and says nothing about the source.
// Connections that the next sample shows are not new.
func TestTakeIncomplete(t *testing.T) {
	s, f := keptBy(kept(1, false), kept(2, true))
	before := s.snapshot.Requests
	f.err = unix.ENOBUFS
	f.sockets = nil
	s.take(time.Now())
	want := before
	want.Stale = true
	if got := s.snapshot.Requests; got != want || s.snapshot.State != stop.Busy {
		t.Errorf("%+v, %v; want %+v", got, s.snapshot.State, want)
	}
	f.err = nil
	f.sockets = []tcp.Socket{kept(1, false), kept(2, true)}
	s.take(time.Now())
	if got := s.snapshot.Requests; got != before || s.snapshot.Traffic.Accepted != 0 {
		t.Errorf("afterwards: %+v, %d new connections", got, s.snapshot.Traffic.Accepted)
	}
}

// TestRequestsUnknown: without sock_diag, or without a port, nothing is known of requests.
func TestRequestsUnknown(t *testing.T) {
	for name, change := range map[string]func(o *observer){
		"/proc/net": func(o *observer) { o.source.conn = nil },
		"no source": func(o *observer) { o.source = source{root: "/no/such"} },
		"no port":   func(o *observer) { o.scope.Ports = nil },
	} {
		s, _ := keptBy(kept(1, true))
		change(s.observer)
		s.take(time.Now())
		if got, want := s.snapshot.Requests, (stop.Requests{Stale: true}); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// TestContinue: the next sample is taken when the snapshot has been handled, and in a search
// at once.
func TestContinue(t *testing.T) {
	s, _ := keptBy(kept(1, true))
	s.cfg.Traffic.Poll = time.Hour
	woken := make(chan bool, 1000)
	s.cfg.Wake = func() { woken <- true }
	s.scannedAt = time.Now()
	go s.run()
	for i := range 20 {
		<-woken
		<-s.out
		if len(woken) > 0 {
			t.Fatalf("sample %d: the next sample did not wait", i)
		}
		s.Continue(true)
	}
	s.SlowDown()
}

// TestPauseSearching: in a search the pause is at least a millisecond, and as long as the
// latest sample took.
func TestPauseSearching(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: searchInterval, 100 * time.Microsecond: searchInterval, 4 * time.Millisecond: 4 * time.Millisecond} {
		s, _ := keptBy(kept(1, true))
		s.searching = true
		if got := s.pause(took); got != want {
			t.Errorf("after a sample of %v: %v, want %v", took, got, want)
		}
	}
}

// TestPauseLullStart: a sample is taken when a search may begin, whatever the pause.
func TestPauseLullStart(t *testing.T) {
	const left = 20 * time.Millisecond
	s, _ := keptBy(kept(1, true))
	s.cfg.Start = time.Now().Add(-time.Minute)
	s.cfg.Gate.Ceiling = time.Minute + left + time.Second
	s.snapshot.Traffic = traffic.Summary{}
	if got := s.pause(0); got <= 0 || got > left {
		t.Errorf("%v before the search the pause is %v", left, got)
	}
}
