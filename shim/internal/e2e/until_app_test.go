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

// What a test asks of a program in a place.

func (a *app) addr(host string) string { return net.JoinHostPort(host, a.port) }

func (a *app) dial(host string) *client {
	a.t.Helper()
	return a.ns.dial(a.addr(host))
}

// shortConn is a connection with one request.
func (a *app) shortConn(host string) {
	a.t.Helper()
	c := a.dial(host)
	c.ask("hello")
	c.Close()
}

// does has the program do something, and waits until it has.
func (a *app) do(command string) {
	a.t.Helper()
	a.sendLine(command)
	a.out.wait(a.t, "did "+command)
}

// slack is what a busy machine may add. That the hold ended by itself is seen by
// its reason: ceilings are further off, or it is the reason that is wanted.
const slack = 4 * time.Second

// wantHoldSince wants the hold to end so long after some moment, and for that reason.
func (a *app) wantHoldSince(since time.Time, at time.Duration, reason string) {
	a.t.Helper()
	got := a.out.wait(a.t, "got TERM").at.Sub(since)
	if got < at || got > at+slack {
		a.t.Errorf("the hold ended after %v, want %v", got, at)
	}
	a.sendLine("exit 7")
	a.wantExit(7)
	a.wantReport("(" + reason + ")")
}

// stops sends TERM, and waits until the hold has begun.
func (a *app) trigger() (at time.Time) {
	a.t.Helper()
	at = time.Now()
	a.signal(sig.TERM)
	a.err.wait(a.t, "until ")
	return at
}

// looks waits until the ports have been taken and the traffic is listened to: a
// sock_diag socket that is in a group.
func (a *app) awaitEvents() {
	a.t.Helper()
	testutil.Eventually(a.t, "it hears events", func() bool {
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

// still wants the hold to go on.
func (a *app) wantHolding(what string) {
	a.t.Helper()
	for _, line := range a.out.all() {
		if line.text == "got TERM" {
			a.t.Errorf("the hold has ended: %s", what)
		}
	}
}

// reports wants the line at the end to have these words.
func (a *app) wantReport(words ...string) {
	a.t.Helper()
	stderr := a.err.all()
	for _, want := range words {
		if last := stderr[len(stderr)-1].text; !strings.Contains(last, want) {
			a.t.Errorf("the report says %q, want %q", last, want)
		}
	}
}

// warnings are lameduck's lines that are neither the trigger's nor the report.
func (a *app) warnings() (list []string) {
	for _, line := range a.err.all() {
		if strings.HasPrefix(line.text, "lameduck: ") && !strings.HasPrefix(line.text, "lameduck: TERM: ") {
			list = append(list, line.text)
		}
	}
	return list
}
