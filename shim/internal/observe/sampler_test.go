package observe

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// TestPause: how long after a sample the next is taken: seldom after the hold and with very many
// sockets, and in time for the end of the hold, of a silence, or for a search, whatever the pause.
func TestPause(t *testing.T) {
	now := time.Unix(10_000, 0)
	halfSilent := now.Add(-usual.QuietFor / 2)
	for _, cells := range script.Rows(`
		# name | age of the hold, floor, ceiling, condition | and | the sample took | pause
		in the hold                | 1h 0 2h quiet          |                 | 1s  | 250ms
		after the hold             | 1h 0 2h quiet          | slowed          | 1s  | 1s
		connections are watched    | 1h 0 2h quiet          | watched         | 0   | 25ms
		after the hold, watched    | 1h 0 2h quiet          | watched slowed  | 0   | 1s
		many sockets               | 1h 0 2h quiet          | many            | 1s  | 10s
		many, quickly listed       | 1h 0 2h quiet          | many            | 1ms | 250ms
		the floor is near          | 1.95s 2s 2s            |                 | 0   | 45ms
		the ceiling is near        | 1.95s 1s 2s quiet      |                 | 0   | 45ms
		the ceiling is too near    | 1.99s 1s 2s quiet      |                 | 0   | 5ms
		silence since the start    | 1ms 0 2h               | many            | 1m  | 2.999s
		silence since a byte       | 1h 0 2h quiet          | many byte       | 1m  | 1.5s
		silence since a connection | 1h 0 2h quiet          | many connection | 1m  | 1.5s
		a search is near           | 1h 0 1h0m1.02s quiet   |                 | 0   | 20ms
		a search                   | 1h 0 2h quiet          | searching       | 0   | 1ms
		a search, slow to sample   | 1h 0 2h quiet          | searching       | 4ms | 4ms
	`) {
		is := func(word string) bool { return strings.Contains(cells[2], word) }
		after := func(text string) time.Duration { return testutil.Must(time.ParseDuration(text)) }
		hold := append(strings.Fields(cells[1]), "")
		gate := stop.Gate{Floor: after(hold[1]), Ceiling: after(hold[2]), Until: stop.Reason(hold[3])}
		s := newSampler(Config{Start: now.Add(-after(hold[0])), Gate: gate, Traffic: usual}, nil)
		s.observer = &observer{}
		if is("many") {
			s.observer.sockets = manySockets + 1
		}
		if is("byte") {
			s.snapshot.LastByte = halfSilent
		}
		if is("connection") {
			s.snapshot.LastNew = halfSilent
		}
		s.slowed.Store(is("slowed"))
		s.searching = is("searching")
		s.watching = is("watched")
		if got := s.pause(now, after(cells[3])).String(); got != cells[4] {
			t.Errorf("%s: %s, want %s", cells[0], got, cells[4])
		}
	}
}

// TestStart: the sampler publishes snapshots until the process ends, and takes SlowDown at
// any time.
func TestStart(t *testing.T) {
	out, woken := make(chan Snapshot, 1), make(chan bool, 1000)
	cfg := Config{Start: time.Now(), Traffic: usual, Ports: []uint16{1}, Gate: stop.Gate{Until: stop.Quiet}, Wake: func() { woken <- true }}
	cfg.Traffic.Poll = 10 * time.Millisecond
	s := Start(cfg, out)
	for range 3 {
		<-woken
		got := <-out
		if got.Began.Before(cfg.Start) || !slices.Equal(got.Scope.Ports, []uint16{1}) || got.Observer == "" || got.Observer == None {
			t.Errorf("%+v", got)
		}
		s.Continue(false)
	}
	s.SlowDown()
}

// TestStates: the state of each verdict, by the condition of the hold.
func TestStates(t *testing.T) {
	met := func(conditions string) (v traffic.Verdict) {
		is := func(word string) bool { return strings.Contains(conditions, word) }
		return traffic.Verdict{
			Settled: is("settled"), Quiet: is("quiet"), Drained: is("drained"), NoSockets: is("gone"), Stuck: is("stuck"),
		}
	}
	for _, cells := range script.Rows(`
		quiet      | settled                    | busy
		settled    | settled                    | met
		quiet      | settled quiet              | met
		drained    | settled quiet              | busy
		drained    | settled quiet drained gone | met
		           | settled quiet drained gone | busy
		quiet      | settled quiet stuck        | no_progress
		quiet hook | settled quiet drained gone | server_gone
		quiet      | settled quiet drained gone | met
	`) {
		until, _, isHook := strings.Cut(cells[0], " hook")
		s := newSampler(Config{Gate: stop.Gate{Until: stop.Reason(until)}, DetectServerGone: isHook, Traffic: usual}, nil)
		s.state(trigger, traffic.Verdict{}) // with a server
		if got := s.state(trigger.Add(usual.QuietFor), met(cells[1])); got.String() != cells[2] {
			t.Errorf("%q: %v", cells, got)
		}
	}
	s := newSampler(Config{Gate: stop.Gate{Until: stop.Quiet}, DetectServerGone: true, Traffic: usual}, nil)
	if got := s.state(trigger, met("settled quiet drained gone")); got != stop.ConditionMet {
		t.Errorf("no server so far: %v", got)
	}
}

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
	cfg := Config{Start: time.Now().Add(-2 * time.Second), Traffic: usual, Gate: stop.Gate{Until: stop.Quiet, Ceiling: 2500 * time.Millisecond}}
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
	if got := s.snapshot.Requests; got != before || s.snapshot.Accepted != 0 {
		t.Errorf("afterwards: %+v, %d new connections", got, s.snapshot.Accepted)
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
