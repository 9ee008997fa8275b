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
	cfg := Config{Start: time.Now().Add(-2 * time.Second), Traffic: usual, Until: stop.Quiet, Ceiling: time.Minute, LullStart: time.Second}
	s := newSampler(cfg, make(chan Snapshot, 1))
	s.cfg.Wake = func() {}
	s.observer = &observer{
		source:   source{conn: f, name: SockDiag},
		scope:    scope.Scope{Ports: scope.Ports{serverEnd.Port()}, Complete: true},
		self:     self{isSelf: map[uint64]bool{}},
		pingpong: pingpongCache{readTable: procfs.Root("/no/such").PingPong, entries: map[uint64]pingpongEntry{}},
	}
	s.observer.late.begin(time.Now(), nil, time.Hour)
	s.observer.opens.begin(s.observer.counters())
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
		"/proc/net": func(o *observer) { o.source.name = ProcNet },
		"no source": func(o *observer) { o.source.name = None },
		"no port":   func(o *observer) { o.scope.Ports = nil },
	} {
		s, _ := keptBy(kept(1, true))
		change(s.observer)
		if got, want := s.requests(), (stop.Requests{Stale: true}); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// TestMayMatter: the sampler waits for the loop after a sample that may end the hold amid
// requests.
func TestMayMatter(t *testing.T) {
	for name, c := range map[string]struct {
		at        time.Duration
		state     stop.TrafficState
		inactive  bool
		slowed    bool
		lullStart time.Duration
		want      bool
	}{
		"in the hold":                    {at: 4 * time.Second, state: stop.Busy},
		"when a search may begin":        {at: 5 * time.Second, state: stop.Busy, want: true},
		"settled, amid requests":         {at: time.Second, state: stop.ConditionMet, want: true},
		"kept":                           {at: time.Second, state: stop.OnlyKept, want: true},
		"quiet":                          {at: 5 * time.Second, state: stop.ConditionMet, inactive: true},
		"after the hold":                 {at: 5 * time.Second, state: stop.Busy, slowed: true},
		"no hold: nobody calls Continue": {at: 5 * time.Second, state: stop.Busy, lullStart: -1},
	} {
		s := newSampler(Config{Start: trigger, LullStart: 5*time.Second + min(c.lullStart*5*time.Second, 0)}, nil)
		s.slowed.Store(c.slowed)
		s.snapshot.Began = trigger.Add(c.at)
		s.snapshot.State = c.state
		s.snapshot.Requests.Active = !c.inactive
		if got := s.mayMatter(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestContinue: a call of Continue for an earlier snapshot does not end the wait for the
// loop, a call for the present snapshot does, early or late.
func TestContinue(t *testing.T) {
	s, _ := keptBy(kept(1, true))
	for range 2 { // the second call finds no room
		s.Continue(true)
	}
	if !s.search.underWay.Load() {
		t.Error("no search is under way")
	}
	s.publish()
	if len(s.search.continued) != 0 {
		t.Fatal("Continue for an earlier snapshot counts")
	}
	s.Continue(false) // early
	<-s.search.continued
	if s.search.underWay.Load() {
		t.Error("the search goes on")
	}
	done := make(chan bool)
	go func() {
		<-s.search.continued
		close(done)
	}()
	s.Continue(true)
	<-done
}

// TestWaitsForLoop: while a sample may end the hold, the sampler publishes the next snapshot
// only after Continue.
func TestWaitsForLoop(t *testing.T) {
	s, _ := keptBy(kept(1, true))
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
		s.search.underWay.Store(true)
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
	s.cfg.LullStart = time.Minute + left
	s.cfg.Ceiling = time.Hour
	s.snapshot.Traffic = traffic.Summary{}
	if got := s.pause(0); got <= 0 || got > left {
		t.Errorf("%v before the search the pause is %v", left, got)
	}
}
