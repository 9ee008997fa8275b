package e2e

import (
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Operations of a test on a program in a network namespace.

func (a *app) addr(host string) string { return net.JoinHostPort(host, a.port) }

func (a *app) dial(host string) *client {
	a.t.Helper()
	return a.ns.dial(a.addr(host))
}

// shortConn makes one request on a connection, and closes the connection.
func (a *app) shortConn(host string) {
	a.t.Helper()
	c := a.dial(host)
	c.ask("hello")
	c.Close()
}

// do has the program run a command, and waits for its confirmation.
func (a *app) do(command string) {
	a.t.Helper()
	a.sendLine(command)
	a.out.wait(a.t, "did "+command)
}

// slack is how late a hold may end on a busy machine. The reason in the report shows that
// the hold has ended by itself: either the ceiling is further off, or the test wants the
// ceiling as the reason.
const slack = 4 * time.Second

// wantHoldSince is box.wantHoldSince with more slack.
func (a *app) wantHoldSince(start time.Time, hold time.Duration, reason string) {
	a.t.Helper()
	a.wantHoldWithin(start, hold, hold+slack, reason)
}

// trigger sends TERM, waits until the hold has begun, and returns the time of the signal.
func (a *app) trigger() (at time.Time) {
	a.t.Helper()
	at = time.Now()
	a.signal(sig.TERM)
	a.err.wait(a.t, "until ")
	return at
}

// awaitEvents waits until lameduck has taken its first sample and joined a netlink group of
// sock_diag, from which the kernel sends events.
func (a *app) awaitEvents() {
	a.t.Helper()
	testutil.Eventually(a.t, "lameduck receives events of sock_diag", func() bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/netlink", a.cmd.Process.Pid))
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line) // sk, Eth, Pid, Groups
			if len(f) > 3 && f[1] == "4" && f[3] != "00000000" {
				return true
			}
		}
		return false
	})
}

// wantHolding checks that the hold has not ended yet; cause says why the hold must go on.
func (a *app) wantHolding(cause string) {
	a.t.Helper()
	for _, line := range a.out.all() {
		if line.text == "got TERM" {
			a.t.Errorf("the hold has ended although %s", cause)
		}
	}
}

// figures returns the report of a program that bootUntil has booted.
func (a *app) figures() jsonReport {
	a.t.Helper()
	return parseReport(a.t, a.report())
}

// wantOpen checks how many connections were open at the end of the hold.
func (a *app) wantOpen(n int) {
	a.t.Helper()
	if r := a.figures(); r.Open == nil || *r.Open != n {
		a.t.Errorf("report: %s\nwant %d open connections", a.report(), n)
	}
}

// wantGivenUp checks that the hold has given up n requests, after a silence.
func (a *app) wantGivenUp(n int, silence string) {
	a.t.Helper()
	r := a.figures()
	if r.InFlight == nil || *r.InFlight != 0 || r.LeftOut.GivenUp != n {
		a.t.Errorf("report: %s\nwant no request in flight, and %d given up", a.report(), n)
	}
	a.wantMessage("silent for " + silence)
}

// wantSource checks how lameduck has observed the traffic.
func (a *app) wantSource(observer, scope string) {
	a.t.Helper()
	r := a.figures()
	if r.Observer == nil || r.Scope == nil || *r.Observer != observer || *r.Scope != scope {
		a.t.Errorf("report: %s\nwant observer %s and scope %s", a.report(), observer, scope)
	}
}

// wantMessage checks that the report contains text.
func (a *app) wantMessage(text string) {
	a.t.Helper()
	if !strings.Contains(a.figures().Message, text) {
		a.t.Errorf("report: %s\nwant %q in it", a.report(), text)
	}
}
