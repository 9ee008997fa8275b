package observe

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
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

// inodeOf returns the inode of a connection's socket.
func inodeOf(conn *net.TCPConn) (inode uint32, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var stat unix.Stat_t
	control := raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &stat) })
	if err == nil {
		err = control
	}
	return uint32(stat.Ino), err
}

// TestPause: how long after a sample the next is taken: seldom after the hold and with very many
// sockets, and in time for the end of the hold, of a silence, or for a search, whatever the pause.
func TestPause(t *testing.T) {
	const ms = time.Millisecond
	now := time.Unix(10_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	hold := func(age, floor, ceiling time.Duration, until stop.Reason) Config {
		return Config{Start: ago(age), Gate: stop.Gate{Floor: floor, Ceiling: ceiling, Until: until}, Traffic: usual}
	}
	long := hold(time.Hour, 0, 2*time.Hour, stop.Quiet)
	lull := hold(time.Hour, 0, time.Hour+1020*ms, stop.Quiet)
	for name, c := range map[string]struct {
		cfg       Config
		slowed    bool
		searching bool
		sockets   int
		last      traffic.Summary
		took      time.Duration
		want      time.Duration
	}{
		"in the hold":          {cfg: long, took: time.Second, want: usual.Poll},
		"after the hold":       {cfg: long, slowed: true, took: time.Second, want: afterHoldInterval},
		"many sockets":         {cfg: long, sockets: manySockets + 1, took: time.Second, want: 10 * time.Second},
		"many, quickly listed": {cfg: long, sockets: manySockets + 1, took: ms, want: usual.Poll},
		"the floor is near":    {cfg: hold(1950*ms, 2*time.Second, 2*time.Second, ""), want: 50*ms - lastSampleLead},
		"the ceiling is near": {
			cfg: hold(1950*ms, time.Second, 2*time.Second, stop.Quiet), want: 50*ms - lastSampleLead,
		},
		"the ceiling is too near": {
			cfg: hold(1990*ms, time.Second, 2*time.Second, stop.Quiet), want: 10*ms - lastSampleLead,
		},
		"silence since the start": {
			cfg: hold(ms, 0, 2*time.Hour, ""), sockets: manySockets + 1, took: time.Minute, want: usual.QuietFor - ms,
		},
		"silence since a byte": {cfg: long, sockets: manySockets + 1, took: time.Minute,
			last: traffic.Summary{LastByte: ago(usual.QuietFor / 2)}, want: usual.QuietFor / 2},
		"silence since a connection": {cfg: long, sockets: manySockets + 1, took: time.Minute,
			last: traffic.Summary{LastNew: ago(usual.QuietFor / 2)}, want: usual.QuietFor / 2},
		"a search is near":         {cfg: lull, want: 20 * ms},
		"a search":                 {cfg: long, searching: true, want: searchInterval},
		"a search, slow to sample": {cfg: long, searching: true, took: 4 * ms, want: 4 * ms},
	} {
		s := newSampler(c.cfg, nil)
		s.observer = &observer{sockets: c.sockets}
		s.slowed.Store(c.slowed)
		s.searching = c.searching
		s.snapshot.Traffic = c.last
		if got := s.pause(now, c.took); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
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

// TestWaitGonePaths: a snapshot names the paths that exist.
func TestWaitGonePaths(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	testutil.WriteFile(t, there, "")
	s := newSampler(Config{WaitGone: []string{filepath.Join(dir, "gone"), there}}, nil)
	s.observer = &observer{}
	for _, want := range [][]string{{there}, nil} {
		s.take(time.Now())
		if got := s.snapshot.PathsPresent; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		os.Remove(there)
	}
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

// TestRescan: the listeners are found anew every Config.Rescan, and else once.
func TestRescan(t *testing.T) {
	for _, rescan := range []time.Duration{0, 2 * time.Second} {
		start := time.Now()
		s := newSampler(Config{Start: start, Traffic: usual, Ports: []uint16{1}, Rescan: rescan}, nil)
		for second, again := range []bool{true, false, rescan > 0, false} {
			before := s.observer
			s.scan(start.Add(time.Duration(second) * time.Second))
			if scanned := s.observer != before; scanned != again {
				t.Errorf("rescan every %v: at %d s, found anew is %v", rescan, second, scanned)
			}
			if before != nil && s.observer != before && (before.source.conn != nil || before.events.reporting()) {
				t.Error("the observer before is not closed")
			}
		}
		s.observer.close()
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
