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
	now := time.Now()
	s.set(now, s.sample(now))
	f.dumps = 0
	return s, f
}

// many returns n connections.
func many(n int) (list []tcp.Socket) {
	for i := range n {
		list = append(list, kept(uint64(i+1), false))
	}
	return list
}

// TestTake: full samples and glances, in the search for a lull and before.
func TestTake(t *testing.T) {
	idle, busy := kept(1, false), kept(2, true)
	listener := tcp.Socket{State: tcp.Listen, Local: serverEnd, Cookie: 9, Inode: 9}
	for name, c := range map[string]struct {
		sockets   []tcp.Socket
		searching bool
		change    func(s *Sampler, f *fakeDumper)
		dumps     int
		lookups   int
	}{
		"before the end of the hold":        {[]tcp.Socket{idle}, false, func(s *Sampler, _ *fakeDumper) { s.cfg.LullStart = time.Hour }, 1, 0},
		"nobody calls Continue":             {[]tcp.Socket{idle}, false, func(s *Sampler, _ *fakeDumper) { s.cfg.LullStart = 0 }, 1, 0},
		"a search may begin, a lull":        {[]tcp.Socket{idle}, false, nil, 1, 1},
		"a search may begin, no lull":       {[]tcp.Socket{idle, busy}, false, nil, 1, 0},
		"after the hold":                    {[]tcp.Socket{idle}, false, func(s *Sampler, _ *fakeDumper) { s.SlowDown() }, 1, 0},
		"in the search":                     {[]tcp.Socket{idle, busy}, true, nil, 0, 1},
		"in the search, a lull":             {[]tcp.Socket{idle}, true, nil, 1, 2},
		"in the search, with a listener":    {[]tcp.Socket{listener, idle}, true, func(_ *Sampler, f *fakeDumper) { f.sockets = f.sockets[1:] }, 1, 2},
		"the full sample is old, no lull":   {[]tcp.Socket{idle, busy}, true, func(s *Sampler, _ *fakeDumper) { s.observer.glanced.at = time.Now().Add(-maxGlances) }, 1, 0},
		"the full sample is old, a lull":    {[]tcp.Socket{idle}, true, func(s *Sampler, _ *fakeDumper) { s.observer.glanced.at = time.Now().Add(-maxGlances) }, 1, 1},
		"the most connections of a glance":  {many(maxGlanced), true, nil, 1, 2},
		"too many connections for a glance": {many(maxGlanced + 1), true, nil, 1, 0},
		"a connection is not found":         {[]tcp.Socket{idle, busy}, true, func(_ *Sampler, f *fakeDumper) { f.sockets = f.sockets[1:] }, 1, 1},
		"a new connection":                  {[]tcp.Socket{idle}, true, func(_ *Sampler, f *fakeDumper) { f.sockets = []tcp.Socket{idle, busy} }, 1, 1},
		"after a new connection": {[]tcp.Socket{idle}, true, func(s *Sampler, f *fakeDumper) {
			f.sockets = []tcp.Socket{idle, kept(7, false)}
			s.set(time.Now(), s.sample(time.Now()))
			f.dumps = 0
		}, 1, 0},
		"shortly after the trigger": {[]tcp.Socket{idle}, true, func(s *Sampler, _ *fakeDumper) {
			s.tracker = traffic.New(usual, time.Now())
			s.set(time.Now(), s.sample(time.Now()))
		}, 2, 0},
		"from /proc/net": {[]tcp.Socket{idle}, true, func(s *Sampler, _ *fakeDumper) {
			s.observer.source.fallBack(errDenied)
			s.observer.source.root = "/no/such"
		}, 0, 0},
	} {
		s, f := keptBy(c.sockets...)
		if c.change != nil {
			c.change(s, f)
		}
		s.search.underWay.Store(c.searching)
		s.take(time.Now())
		if f.dumps != c.dumps || f.lookups != c.lookups {
			t.Errorf("%s: %d dumps and %d lookups, want %d and %d", name, f.dumps, f.lookups, c.dumps, c.lookups)
		}
	}
}

// TestTakeRequests: a full sample and a glance show the same requests.
func TestTakeRequests(t *testing.T) {
	for _, searching := range []bool{false, true} {
		s, _ := keptBy(kept(1, false), kept(2, true), kept(3, true))
		s.search.underWay.Store(searching)
		s.take(time.Now())
		if got, want := s.snapshot.Requests, (stop.Requests{Active: true, AtRisk: 2}); got != want || s.snapshot.State != stop.Busy {
			t.Errorf("searching %v: %+v, %v; want %+v", searching, got, s.snapshot.State, want)
		}
	}
}

// TestTakeIncomplete: a sample that fails shows no lull, and says nothing about the source.
// Connections that the next sample shows are not new.
func TestTakeIncomplete(t *testing.T) {
	for name, fail := range map[string]func(s *Sampler, f *fakeDumper){
		"a lookup and a dump": func(_ *Sampler, f *fakeDumper) { f.err = unix.ENOBUFS },
		"a dump": func(s *Sampler, f *fakeDumper) {
			f.err = unix.ENOBUFS
			s.observer.glanced.at = time.Time{}
		},
	} {
		s, f := keptBy(kept(1, false), kept(2, true))
		before := s.snapshot.Requests
		s.search.underWay.Store(true)
		fail(s, f)
		f.sockets = nil
		s.take(time.Now())
		want := before
		want.Stale = true
		if got := s.snapshot.Requests; got != want || s.snapshot.State != stop.Busy {
			t.Errorf("%s: %+v, %v; want %+v", name, got, s.snapshot.State, want)
		}
		f.err = nil
		f.sockets = []tcp.Socket{kept(1, false), kept(2, true)}
		f.dumps = 0
		f.lookups = 0
		s.take(time.Now())
		if got := s.snapshot.Requests; got != before || f.dumps != 1 || f.lookups != 0 || s.snapshot.Traffic.Accepted != 0 {
			t.Errorf("%s, afterwards: %+v, %d dumps, %d lookups, %d new connections", name, got, f.dumps, f.lookups, s.snapshot.Traffic.Accepted)
		}
	}
}

// TestTakeNotFound: connections that lookups do not find, as connections bound to a device,
// are no less at risk, and are not new in the next full sample.
func TestTakeNotFound(t *testing.T) {
	s, f := keptBy(kept(1, true), kept(2, true))
	s.search.underWay.Store(true)
	s.observer.source.conn = withoutLookup{f}
	for i := range 20 {
		s.take(time.Now())
		if got, want := s.snapshot.Requests, (stop.Requests{Active: true, AtRisk: 2}); got != want {
			t.Fatalf("sample %d: %+v, want %+v", i, got, want)
		}
	}
	if n := s.tracker.Summary().Accepted; n != 0 {
		t.Errorf("%d new connections", n)
	}
}

// withoutLookup is a dumper whose Lookup finds no connection.
type withoutLookup struct{ *fakeDumper }

func (withoutLookup) Lookup([]tcp.Socket, func(int, *tcp.Socket)) error { return nil }

// TestGlanceEvents: events wait for a full sample.
func TestGlanceEvents(t *testing.T) {
	s, _ := keptBy(kept(1, true))
	s.search.underWay.Store(true)
	closed := kept(7, false)
	closed.State = tcp.Close
	s.observer.events.closed = append(s.observer.events.closed, traffic.Closed{Socket: closed, At: time.Now()})
	for want, full := range []bool{false, true} {
		if full {
			s.observer.glanced.at = time.Time{}
		}
		s.take(time.Now())
		if n := s.snapshot.Traffic.Accepted; n != want {
			t.Errorf("full sample %v: %d new connections, want %d", full, n, want)
		}
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

// TestTooMany: many sockets whose samples are all slow are too many. A busy machine delays
// most samples, but not all.
func TestTooMany(t *testing.T) {
	const slow, quick = 2 * maxSearchSample, maxSearchSample / 2
	for name, c := range map[string]struct {
		sockets int
		took    []time.Duration
		want    bool
	}{
		"few, slow":                {10, []time.Duration{slow, slow}, false},
		"many, quick":              {manySearched + 1, []time.Duration{quick}, false},
		"many, slow":               {manySearched + 1, []time.Duration{slow, slow, slow}, true},
		"many, one of them quick":  {manySearched + 1, []time.Duration{slow, quick, slow}, false},
		"many, quick a while ago":  {manySearched + 1, []time.Duration{quick, slow, slow, slow, slow, slow, slow, slow, slow}, true},
		"many, without a duration": {manySearched + 1, []time.Duration{0}, false},
	} {
		s, _ := keptBy(kept(1, true))
		s.observer.sockets = c.sockets
		for _, took := range c.took {
			s.search.add(took)
		}
		if got := s.requests().TooMany; got != c.want {
			t.Errorf("%s: %v", name, got)
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
	s.awaitLoop()
	if s.search.underWay.Load() {
		t.Error("the search goes on")
	}
	done := make(chan bool)
	go func() {
		s.awaitLoop()
		close(done)
	}()
	s.Continue(true)
	<-done
}

// TestAwaitLoop: while a sample may end the hold, the sampler publishes the next snapshot
// only after Continue.
func TestAwaitLoop(t *testing.T) {
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

// TestPauseSearching: in a search the pause is at least a millisecond, and three times as
// long as the latest sample took.
func TestPauseSearching(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: searchInterval, 100 * time.Microsecond: searchInterval, 4 * time.Millisecond: 12 * time.Millisecond} {
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
