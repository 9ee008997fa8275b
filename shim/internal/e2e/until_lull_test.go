package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Tests of the lull: where a hold ends although requests come, the first signal is sent in
// a moment without a request in flight.

// gatedApp is a program whose requests the test answers, with JSON for a report.
type gatedApp struct{ *app }

// bootGated boots a program with requests in flight, and begins a hold.
func bootGated(t *testing.T, requests int, flags ...string) (g gatedApp, start time.Time) {
	t.Helper()
	t.Parallel()
	ns := newNamespace(t)
	words := append([]string{binary, "--log-format=json", "--log-level=debug"}, append(flags, "--")...)
	g = gatedApp{ns.boot("stage", append(words, helperCommand("gated", "127.0.0.1:0")...)...)}
	for range requests {
		fmt.Fprintln(g.dial("127.0.0.1"), "wait")
	}
	g.out.waitCount(t, 2+requests) // port, ready, and "waits" for each request
	start = time.Now()
	g.signal(sig.TERM)
	g.err.wait(t, "TERM: holding")
	return g, start
}

// awaitSearch waits until lameduck looks for a lull.
func (g gatedApp) awaitSearch() { g.err.wait(g.t, searchLine) }

// searchLine is in lameduck's line at the begin of the search, at --log-level=debug.
const searchLine = "searching for a lull"

// report ends the command and returns the last report.
func (g gatedApp) report() jsonReport {
	g.t.Helper()
	g.out.wait(g.t, "got TERM")
	g.sendLine("exit 7")
	g.wantExit(7)
	all := g.err.all()
	return parseReport(g.t, all[len(all)-1].text)
}

// lullCases are holds of 1500 ms at most that end at a lull: the search begins after 500 ms
// or 1000 ms.
var lullCases = map[string][]string{
	"ceiling": {"--until=quiet", "--quiet-for=1", "--max-delay=1.5", "--grace-period=30"},
	"elapsed": {"--delay=1", "--grace-period=30"},
	"settled": {"--until=settled", "--quiet-for=1", "--grace-period=30"},
}

// TestLull: the signal is sent as soon as the last request has been answered.
func TestLull(t *testing.T) {
	for reason, flags := range lullCases {
		t.Run(reason, func(t *testing.T) {
			g, _ := bootGated(t, 2, flags...)
			g.awaitSearch()
			g.sendLine("reply")
			answered := time.Now()
			g.sendLine("reply")
			r := g.report()
			if *r.Ended != reason || *r.InFlight != 0 || r.Sent[0].AtMS >= 1500 {
				t.Errorf("ended by %s at %d ms with %d in flight, want %s before 1500 ms with 0", *r.Ended, r.Sent[0].AtMS, *r.InFlight, reason)
			}
			if early := answered.Sub(g.out.wait(t, "got TERM").at); early > 0 {
				t.Errorf("the signal was sent %v before the last answer", early)
			}
		})
	}
}

// TestLullNever: without a lull the signal is sent at the end of the search.
func TestLullNever(t *testing.T) {
	for reason, flags := range lullCases {
		t.Run(reason, func(t *testing.T) {
			g, _ := bootGated(t, 2, flags...)
			r := g.report()
			if *r.Ended != reason || *r.InFlight != 2 || r.Sent[0].AtMS > 1500+slack.Milliseconds() {
				t.Errorf("ended by %s at %d ms with %d in flight, want %s at 1500 ms with 2", *r.Ended, r.Sent[0].AtMS, *r.InFlight, reason)
			}
		})
	}
}

// TestLullSkipped: a second TERM and INT end the search at once.
func TestLullSkipped(t *testing.T) {
	for _, s := range []sig.Signal{sig.TERM, sig.INT} {
		t.Run(s.String(), func(t *testing.T) {
			g, _ := bootGated(t, 1, "--until=quiet", "--quiet-for=1", "--max-delay=3", "--grace-period=30")
			g.awaitSearch()
			g.signal(s)
			if r := g.report(); r.Sent[0].AtMS >= 3000 {
				t.Errorf("ended by %s at %d ms, want the signal before 3000 ms", *r.Ended, r.Sent[0].AtMS)
			}
		})
	}
}
