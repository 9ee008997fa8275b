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
func bootGated(t *testing.T, requests int, flags ...string) gatedApp {
	t.Helper()
	ns := newNamespace(t)
	words := append([]string{binary, "--log-format=json", "--log-level=debug"}, append(flags, "--")...)
	g := gatedApp{ns.boot("stage", append(words, helperCommand("gated", "127.0.0.1:0")...)...)}
	for range requests {
		fmt.Fprintln(g.dial("127.0.0.1"), "wait")
	}
	g.out.waitCount(t, 2+requests) // port, ready, and "waits" for each request
	g.signal(sig.TERM)
	return g
}

// awaitSearch waits until lameduck looks for a lull.
func (g gatedApp) awaitSearch() { g.err.wait(g.t, searchLine) }

// searchLine is in lameduck's line at the begin of the search, at --log-level=debug.
const searchLine = "searching for a lull"

// final ends the command and returns the last report.
func (g gatedApp) final() jsonReport {
	g.t.Helper()
	g.out.wait(g.t, "got TERM")
	g.sendLine("exit 7")
	g.wantExit(7)
	all := g.err.all()
	return parseReport(g.t, all[len(all)-1].text)
}

// lullCase is a hold that ends at a lull. until is the end of the search, in ms.
type lullCase struct {
	flags []string
	until int64
}

var lullCases = map[string]lullCase{
	"ceiling": {[]string{"--until=quiet", "--quiet-for=1", "--max-delay=2.5", "--grace-period=30"}, 2500},
	"elapsed": {[]string{"--delay=1", "--grace-period=30"}, 1500},
	"settled": {[]string{"--until=settled", "--quiet-for=1", "--grace-period=30"}, 1500},
}

// TestLull: the signal is sent as soon as the last request has been answered, and not
// before.
func TestLull(t *testing.T) {
	for reason, c := range lullCases {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			for range 5 { // a busy machine may delay the test's answers beyond the end of the search
				g := bootGated(t, 2, c.flags...)
				g.awaitSearch()
				g.sendLine("reply")
				answered := time.Now()
				g.sendLine("reply")
				r := g.final()
				if r.Sent[0].AtMS >= c.until {
					continue
				}
				if *r.Ended != reason || *r.InFlight != 0 {
					t.Errorf("ended by %s with %d in flight, want %s with 0", *r.Ended, *r.InFlight, reason)
				}
				if early := answered.Sub(g.out.wait(t, "got TERM").at); early > 0 {
					t.Errorf("the signal was sent %v before the last answer", early)
				}
				return
			}
			t.Errorf("the signal was sent at the end of the search, %d ms after the trigger", c.until)
		})
	}
}

// TestLullNever: without a lull the signal is sent at the end of the search.
func TestLullNever(t *testing.T) {
	for reason, c := range lullCases {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			g := bootGated(t, 2, c.flags...)
			r := g.final()
			at := r.Sent[0].AtMS
			if *r.Ended != reason || *r.InFlight != 2 || at < c.until || at > c.until+slack.Milliseconds() {
				t.Errorf("ended by %s at %d ms with %d in flight, want %s at %d ms with 2", *r.Ended, at, *r.InFlight, reason, c.until)
			}
		})
	}
}

// TestLullSkipped: a second TERM and INT end the search at once.
func TestLullSkipped(t *testing.T) {
	for s, reason := range map[sig.Signal]string{sig.TERM: "second_signal", sig.INT: "interrupt"} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			g := bootGated(t, 1, "--until=quiet", "--quiet-for=1", "--max-delay=2.5", "--grace-period=30")
			g.awaitSearch()
			g.signal(s)
			if r := g.final(); *r.Ended != reason {
				t.Errorf("ended by %s at %d ms, want %s", *r.Ended, r.Sent[0].AtMS, reason)
			}
		})
	}
}

// TestLullMany: thousands of connections, among which a sample may take longer than a lull
// lasts, do no harm.
func TestLullMany(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	a := ns.bootUntil("stage", "quiet", quiet1sFlags, helperCommand("app", "127.0.0.1:0")...)
	for range 2000 {
		a.dial("127.0.0.1").ask("hello")
	}
	a.wantHoldSince(a.trigger(), quiet1s-100*time.Millisecond, "quiet")
	a.wantOpen(2000)
}
