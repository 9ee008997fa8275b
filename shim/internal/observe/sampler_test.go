package observe

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// TestPause: how long after a sample the next is taken: seldom after the hold and with very many
// sockets, and in time for the end of the hold, of a silence, or for a search, whatever the pause.
func TestPause(t *testing.T) {
	halfSilent := trigger.Add(-usual.QuietFor / 2)
	for _, cells := range tables.Rows(`
		# name | age of the hold, floor, ceiling, condition | and | the sample took | pause
		in the hold                | 1h 0 2h quiet          |                 | 1s  | 250ms
		after the hold             | 1h 0 2h quiet          | slowed          | 1s  | 1s
		connections are watched    | 1h 0 2h quiet          | watched         | 0   | 25ms
		after the hold, watched    | 1h 0 2h quiet          | watched slowed  | 0   | 1s
		many sockets               | 1h 0 2h quiet          | many            | 1s  | 10s
		many, quickly listed       | 1h 0 2h quiet          | many            | 1ms | 250ms
		many, watched              | 1h 0 2h quiet          | many watched    | 9ms | 90ms
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
		s, _, _ := fakeSampler()
		s.cfg.Start = trigger.Add(-after(hold[0]))
		s.cfg.Gate = stop.Gate{Floor: after(hold[1]), Ceiling: after(hold[2]), Until: stop.Reason(hold[3])}
		if is("many") {
			s.observer.sockets = fewSockets + 1
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
		if got := s.pause(trigger, after(cells[3])).String(); got != cells[4] {
			t.Errorf("%s: %s, want %s", cells[0], got, cells[4])
		}
	}
}

// TestStart: the sampler publishes snapshots until the process ends. The next sample is taken when
// the snapshot has been handled, and in a search at once.
func TestStart(t *testing.T) {
	netns.Need(t)
	l := testutil.Must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	out, woken := make(chan Snapshot, 1), make(chan bool, 1000)
	cfg := Config{Start: time.Now(), Traffic: usual, Ports: []uint16{port}, Wake: func() { woken <- true }}
	cfg.Traffic.Poll = time.Hour
	s := Start(cfg, out)
	for i := range 20 {
		<-woken
		got := <-out
		isPort := slices.Equal(got.Scope.Ports, []uint16{port})
		if got.Began.Before(cfg.Start) || !isPort || got.Observer != report.SockDiag {
			t.Errorf("%+v", got)
		}
		if len(woken) > 0 {
			t.Fatalf("sample %d: the next sample did not wait", i)
		}
		s.Continue(true)
	}
}

// TestStates: the state of each verdict, by the condition of the hold. A hook learns that the server
// has ended, if there was one.
func TestStates(t *testing.T) {
	for _, cells := range tables.Rows(`
		quiet                | settled                         | busy
		settled              | settled                         | met
		quiet                | settled quiet                   | met
		drained              | settled quiet                   | busy
		drained              | settled quiet drained nosockets | met
		                     | settled quiet drained nosockets | busy
		quiet                | settled quiet stuck             | no_progress
		quiet, a hook        | settled quiet drained nosockets | server_gone
		quiet, a hook, later | settled quiet drained nosockets | met
		quiet, a hook, doubt | settled quiet drained nosockets | met
		quiet                | settled quiet drained nosockets | met
	`) {
		until, hook, _ := strings.Cut(cells[0], ", ")
		s, _, _ := fakeSampler()
		s.cfg.Gate.Until = stop.Reason(until)
		s.cfg.DetectServerGone = hook != ""
		if hook != "a hook, later" {
			s.snapshot.ServedAt = trigger
		}
		if hook == "a hook, doubt" { // a sample was incomplete since
			s.incompleteAt = trigger.Add(1)
		}
		for fact := range strings.FieldsSeq(cells[1]) {
			if !tables.Set(&s.snapshot.Verdict, fact, "") {
				panic(fact)
			}
		}
		if got := s.state(trigger.Add(usual.QuietFor)); got.String() != cells[2] {
			t.Errorf("%q: %v", cells, got)
		}
	}
}
