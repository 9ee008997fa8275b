package watch

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/cost"
	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/termlog"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// TestLateEvents: after a signal one more sample ends watch, and where a listener has gone, one
// that late events have had the time to reach.
func TestLateEvents(t *testing.T) {
	ended := cost.Result{Ends: []*cost.End{{Port: 80, At: time.Now()}}}
	for _, c := range []struct {
		cost  cost.Result
		after time.Duration
		done  bool
	}{{after: -1}, {after: 1, done: true}, {ended, cost.LateEvent / 2, false}, {ended, cost.LateEvent + 1, true}} {
		w := newTestWatch(time.Now())
		w.onSignal(sig.INT)
		w.onSample(&observe.Snapshot{Began: w.endedAt.Add(c.after)}, c.cost)
		if w.done != c.done {
			t.Errorf("%v after the signal, %d listeners gone: done %v", c.after, len(c.cost.Ends), w.done)
		}
	}
}

// TestFaults: a fault of the sampler or of the loop ends watch with an error, after the verdict so far.
func TestFaults(t *testing.T) {
	for fault, verdicts := range map[string]int{"sampler": 1, "loop": 0} {
		said := 0
		w := newTestWatch(time.Now())
		w.print = func(text string) error {
			if fault == "loop" {
				panic(text)
			}
			said++
			return nil
		}
		w.cost.TERM, w.cost.Ends = time.Now(), []*cost.End{{Port: 80, At: time.Now()}}
		w.samples <- observe.Snapshot{Fault: fault}
		err := w.run()
		if err == nil || !strings.Contains(err.Error(), "a fault of lameduck's own") || said/2 != verdicts {
			t.Errorf("fault of the %s: %v, said %d", fault, err, said)
		}
	}
}

// TestMinute: a verdict has the connections of the minute before the stop.
func TestMinute(t *testing.T) {
	start := time.Unix(1_000_000_000, 0)
	w := &watch{}
	for _, c := range []struct{ after, accepted, want int }{
		{0, 100, 0}, {30, 130, 30}, {60, 160, 60}, {61, 161, 31}, {90, 190, 60}, {200, 300, 0},
	} {
		w.cost.Now = start.Add(time.Duration(c.after) * time.Second)
		w.countMinute(c.accepted)
		if w.cost.Accepted != c.want {
			t.Errorf("after %d s: %d, want %d", c.after, w.cost.Accepted, c.want)
		}
	}
}

// TestViewOfSlowRequest: a request that was silent before the first view is in flight, as
// for a hold that begins with the view, and is given up as late as in that hold.
func TestViewOfSlowRequest(t *testing.T) {
	first := time.Unix(1_000_000_000, 0)
	w := newTestWatch(first)
	for after, want := range map[time.Duration]string{0: "1 in flight", 29 * time.Second: "1 in flight", 30 * time.Second: "0 in flight"} {
		s := &observe.Snapshot{}
		s.Sample = traffic.Sample{
			Verdict: traffic.Verdict{Settled: true, Quiet: true}, Open: 1, LeftOut: traffic.LeftOut{GivenUp: 1},
		}
		state := map[bool]string{true: "; settled, but requests are in flight", false: "; quiet"}[want[0] == '1']
		w.cost.Now = first.Add(after)
		if view := w.view(s); !strings.Contains(view, want) || !strings.HasSuffix(view, state) {
			t.Errorf("after %v: %s, want %s%s", after, view, want, state)
		}
	}
}

func newTestWatch(now time.Time) *watch {
	p := testutil.Must(plan.New(&plan.Config{}, plan.Place{Uncatchable: sigcatch.Uncatchable}))
	return newWatch(p, func(string) error { return nil }, termlog.New(""), now)
}

// TestState: a view says which condition is met, or why the server is busy, and what its end has cost.
func TestState(t *testing.T) {
	for _, cells := range tables.Rows(`
		settled quiet drained | drained
		settled quiet         | quiet
		settled asked         | settled, but requests are in flight
		settled               | settled, but bytes come
		asked                 | busy: requests are in flight
		unaccepted            | busy: connections wait to be accepted
		                      | busy: new connections
		ended                 | 3 cut, 3 refused
		ended unseen          | 3 refused
	`) {
		is := func(word string) bool { return slices.Contains(strings.Fields(cells[0]), word) }
		w, s := newTestWatch(time.Now()), &observe.Snapshot{}
		s.Verdict = traffic.Verdict{Settled: is("settled"), Quiet: is("quiet"), Drained: is("drained")}
		if is("asked") {
			s.InFlight = 1
		}
		if is("unaccepted") {
			s.Cause.Kind = traffic.AcceptQueue
		}
		if is("ended") {
			w.cost.Result = cost.Result{Ends: []*cost.End{{Port: 80, Cut: 1, Streams: 2}}, Refused: 3}
		}
		if is("unseen") {
			w.cost.Source = "/proc/net"
		}
		if got := w.state(s); got != cells[1] {
			t.Errorf("%s: %q, want %q", cells[0], got, cells[1])
		}
	}
}
