package hold_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestKept: clients that never let go hold for eight times --quiet-for; then the signal is
// sent between two requests. A preStop hook ends too.
func TestKept(t *testing.T) {
	t.Run("PID 1", func(t *testing.T) {
		t.Parallel()
		b := box.Setup{Faults: "uid=65534", Network: box.NewNetwork(t)}.Catch(t, flags+"--until=quiet", "127.0.0.1:0")
		one, other := b.Dial("127.0.0.1"), b.Dial("127.0.0.1")
		one.Ask("hello")
		other.Ask("hello")
		if r := wantKept(b, 50*time.Millisecond, func() { one.Ask("hello"); other.Ask("hello") }); r.Open != 2 {
			t.Errorf("report %+v, want two open connections", r)
		}
	})
	t.Run("hook", func(t *testing.T) {
		h := startHost(t, box.Setup{}, nil, "127.0.0.1:0")
		c := h.Dial("127.0.0.1")
		end := box.Steady(t, quiet, 50*time.Millisecond, func() { c.Ask("hello") })
		h.hook("$L hold --quiet-for=1 --grace-period=30")
		h.Out.Wait("hook: exited")
		end() // while the server still answers
		h.wantHook(0, kept, "kept")
	})
}

// TestLull: where a hold ends although requests come, the signal is sent as soon as the last
// request has been answered, and not before; without a lull at the end of the search, or when
// a second TERM or INT comes. Requests on new connections are in flight like others.
func TestLull(t *testing.T) {
	for _, c := range box.Table(`
		case            | flags                                       | then   | reason        | end of the search
		ceiling         | --until=quiet --quiet-for=1 --max-delay=2.5 | answer | ceiling       | 2500
		elapsed         | --delay=1                                   | answer | elapsed       | 1500
		settled         | --until=settled --quiet-for=1               | answer | settled       | 1500
		never           | --until=quiet --quiet-for=1 --max-delay=2.5 |        | ceiling       | 2500
		never, fixed    | --delay=1                                   |        | elapsed       | 1500
		new connections | --delay=1                                   | ask    | elapsed       | 1500
		second signal   | --until=quiet --quiet-for=1 --max-delay=2.5 | TERM   | second_signal | 0
		interrupted     | --until=quiet --quiet-for=1 --max-delay=2.5 | INT    | interrupt     | 0
	`) {
		t.Run(c["case"], func(t *testing.T) {
			t.Parallel()
			for range 5 { // a busy machine may delay the test's answers beyond the end of the search
				b := box.Setup{Network: box.NewNetwork(t)}.Catch(t, "--grace-period=30 --log-level=debug "+c["flags"],
					"127.0.0.1:0")
				for range 2 {
					fmt.Fprintln(b.Dial("127.0.0.1"), "wait")
				}
				b.Out.WaitNth(2, "waits")
				b.Stop()
				b.Err.Wait("searching for a lull")
				var answered time.Time
				answers := c["then"] == "answer"
				end := func() {}
				switch s, _ := sig.Parse(c["then"]); {
				case answers:
					b.Send("reply")
					answered = time.Now()
					b.Send("reply")
				case s != 0:
					b.Signal(s)
				case c["then"] == "ask":
					end = box.Repeat(5*time.Millisecond, func() {
						fmt.Fprintln(b.Dial("127.0.0.1"), "wait")
						b.Send("reply")
					})
				}
				sent := b.Out.Wait("got TERM")
				end()
				b.Exit()
				r := b.Report()
				over := testutil.Must(strconv.Atoi(c["end of the search"]))
				if answers && r.Sent[0].AtMS >= over {
					continue
				}
				if r.Ended != c["reason"] || (r.InFlight == 0) != answers || sent.At.Before(answered) || !answers &&
					r.Sent[0].AtMS < over {
					t.Errorf("report %+v, want %s", r, c["reason"])
				}
				return
			}
			t.Error("the signal was sent at the end of the search")
		})
	}
}
