package watch

import (
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
	w := &watch{}
	start := time.Now()
	for _, c := range [][3]int{{0, 100, 0}, {30, 130, 30}, {60, 160, 60}, {61, 161, 31}, {90, 190, 60}, {200, 300, 0}} {
		w.cost.Now = start.Add(time.Duration(c[0]) * time.Second)
		w.countMinute(c[1])
		if w.cost.Accepted != c[2] {
			t.Errorf("after %d s and %d connections: %d, want %d", c[0], c[1], w.cost.Accepted, c[2])
		}
	}
}

func newTestWatch(now time.Time) *watch {
	p := testutil.Must(plan.New(&plan.Config{}, plan.Place{Uncatchable: sigcatch.Uncatchable}))
	return newWatch(p, func(string) error { return nil }, termlog.New(""), now)
}

// TestState: a view says which condition is met, or why the server is busy, and what its end has cost. A
// request that was silent before the first view is in flight, as for a hold that begins with the view, and
// is given up as late as in that hold.
func TestState(t *testing.T) {
	for _, cells := range tables.Rows(`
		settled quiet drained      | 0 in flight | drained
		settled quiet              | 0 in flight | quiet
		settled quiet silent       | 1 in flight | settled, but requests are in flight
		settled quiet silent later | 0 in flight | quiet
		settled asked              | 1 in flight | settled, but requests are in flight
		settled                    | 0 in flight | settled, but bytes come
		asked                      | 1 in flight | busy: requests are in flight
		unaccepted                 | 0 in flight | busy: connections wait to be accepted
		                           | 0 in flight | busy: new connections
		ended                      | 0 in flight | 3 cut, 3 refused
		ended unseen               | 0 in flight | 3 refused
	`) {
		first := time.Now()
		w, s := newTestWatch(first), &observe.Snapshot{}
		w.cost.Now = first.Add(29 * time.Second)
		for word := range strings.FieldsSeq(cells[0]) {
			switch word {
			case "silent":
				s.LeftOut.GivenUp = 1
			case "later":
				w.cost.Now = first.Add(30 * time.Second)
			case "asked":
				s.InFlight = 1
			case "unaccepted":
				s.Cause.Kind = traffic.AcceptQueue
			case "ended":
				w.cost.Result = cost.Result{Ends: []*cost.End{{Port: 80, Cut: 1, Streams: 2}}, Refused: 3}
			case "unseen":
				w.cost.Source = "/proc/net"
			default:
				tables.Set(&s.Verdict, word, "")
			}
		}
		if got := w.view(s); !strings.Contains(got, cells[1]) || !strings.HasSuffix(got, "; "+cells[2]) {
			t.Errorf("%s: %q, want %q", cells[0], got, cells[1:])
		}
	}
}
