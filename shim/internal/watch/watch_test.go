package watch

import (
	"fmt"
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
	cfg := plan.Config{GracePeriod: 30 * time.Second}
	p := testutil.Must(plan.New(&cfg, plan.Place{Uncatchable: sigcatch.Uncatchable}))
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

// began is when the times of TestStop begin.
var began = time.Unix(1_000_000_000, 0)

// at returns the time so many seconds later, if a text has any.
func at(text string) (moment time.Time) {
	if text != "" {
		moment = began.Add(testutil.Must(time.ParseDuration(text + "s")))
	}
	return moment
}

// TestStop: when a stop began, when it is over, and what would have been enough. Times are
// in seconds.
func TestStop(t *testing.T) {
	for _, c := range tables.Read[struct {
		Name                                        string
		TERM, End, LastRefused, LastOther, LastByte time.Time
		And, Found                                  string
	}](`
		# name | TERM | end | last refused | last new | last byte, not a probe's | and | began, over, hold, delay, keeps on
		no TERM             |    | 10   | 13.4 | 9.9  | 9.9  |                | 10 17.4 7.4 5 false
		TERM later          | 12 | 10   | 13.4 | 9.9  | 9.9  |                | 10 14 7.4 5 false
		held until quiet    | 10 | 17.2 |      | 13.1 | 13.2 |                | 10 21.2 7.2 5 false
		nobody comes        | 10 | 10.1 |      | 3    | 4    |                | 10 14.1 4 0 false
		connections remain  | 10 | 10.1 |      | 3    | 4    | Open=1         | 10 39 4 0 false
		it serves on        | 10 |      |      | 38   | 39   | Listening=81   | 10 39 19 31 false
		another port serves | 10 | 10.1 |      | 3    | 4    | Listening=81   | 10 39 4 0 false
		nothing has served  | 10 |      |      |      |      |                | 10 10 4 0 false
		refused to the end  | 10 | 10.1 | 38.9 | 10   | 10   |                | 10 39 19 30 false
		refused as it ended |    | 10   | 10   | 9    | 9    |                | 10 14 4 2 false
		clients keep on     | 10 | 19   |      | 8    | 19   | Before.InUse=3 | 10 23 13 11 true
		and others came     | 10 | 19   |      | 16   | 19   | Before.InUse=3 | 10 23 13 11 false
		a pool, let go late | 10 | 25   |      | 10.6 | 22.1 | Before.InUse=3 | 10 29 16.1 14 false
		and after the end   | 10 | 15   | 22.1 | 10.6 | 15   | Before.InUse=3 | 10 26.1 16.1 14 false
		it dies at once     | 10 | 10.1 |      | 3    | 10   | Before.InUse=3 | 10 14.1 4 2 false
	`, at) {
		w := newTestWatch(began)
		s := &w.cost
		s.TERM = c.TERM
		s.Before.LastOther, s.Before.LastByte, s.Before.LastUse = c.LastOther, c.LastByte, c.LastByte
		s.LastRefused = c.LastRefused
		if !c.End.IsZero() {
			s.Ends = []*cost.End{{Port: 80, At: c.End}}
		}
		if name, value, found := strings.Cut(c.And, "="); found && !tables.Set(s, name, value) {
			panic(name)
		}
		for s.Now = s.Began(); !w.isOver() && s.Now.Before(at("60")); s.Now = s.Now.Add(100 * time.Millisecond) {
		}
		hold, delay, _ := s.Needed()
		got := fmt.Sprint(s.Began().Sub(began).Seconds(), s.Now.Sub(began).Seconds(), hold.Round(time.Millisecond).Seconds(),
			delay.Seconds(), s.KeepsOn())
		if got != c.Found {
			t.Errorf("%s: %s, want %s", c.Name, got, c.Found)
		}
	}
	if w := newTestWatch(began); !w.cost.Began().IsZero() || w.isOver() {
		t.Errorf("nothing has happened, and the stop began at %v", w.cost.Began())
	}
}
