package e2e

import (
	"strings"
	"testing"
	"time"
)

// TestUntilUncounted: without destroy events and counters, connections shorter than a
// sample cannot be seen, so the time between samples does not count as silence.
func TestUntilUncounted(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	a := ns.bootUntil("stage:no-proc,no-groups", "quiet", append(quiet1sFlags, "--max-delay=4"), helperCommand("app", "127.0.0.1:0")...)
	start := a.trigger()
	repeatFor(2*quiet1s, 200*time.Millisecond, func() { a.shortConn("127.0.0.1") })
	if got := a.out.wait(t, "got TERM").at.Sub(start); got < 3200*time.Millisecond {
		t.Errorf("the hold ended after %v, want the ceiling of 4 s, or a lull in the last fifth", got)
	}
	a.sendLine("exit 7")
	a.wantExit(7)
}

// TestUntilBlindReport: a report without observations gives no figures.
func TestUntilBlindReport(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"stage:no-proc,no-netlink", "stage:no-proc-net,no-netlink"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			a := ns.bootUntil(stage, "quiet", append(quiet1sFlags, "--max-delay=2"), helperCommand("app", "127.0.0.1:0")...)
			a.shortConn("127.0.0.1")
			start := a.trigger()
			a.shortConn("127.0.0.1")
			a.wantHoldSince(start, 2*time.Second, "blind")
			for _, line := range a.err.all() {
				if strings.Contains(line.text, "new connection") || strings.Contains(line.text, "in flight") || strings.Contains(line.text, "through /proc/net") || strings.Contains(line.text, "source: ") {
					t.Errorf("stderr: %q, want no figures and no source", line.text)
				}
			}
			if r := a.figures(); r.Accepted != nil || r.Open != nil || r.InFlight != nil || r.Scope != nil {
				t.Errorf("report: %s\nwant no figures and no scope", a.report())
			}
			a.wantMessage("the traffic could not be seen")
		})
	}
}

// TestUntilUDPReport: the report names UDP listeners. Without TCP listeners lameduck also
// warns at the trigger.
func TestUntilUDPReport(t *testing.T) {
	t.Parallel()
	for name, listens := range map[string][]string{
		"alone":      {"udp 127.0.0.1:5353"},
		"beside TCP": {"127.0.0.1:0", "udp 127.0.0.1:5353"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			a := ns.bootUntil("stage", "quiet", quiet1sFlags, helperCommand("app", listens...)...)
			a.trigger()
			a.out.wait(t, "got TERM")
			a.sendLine("exit 7")
			a.wantExit(7)
			a.wantMessage("UDP on 5353 cannot be seen")
			if stderr := strings.Join(a.warnings(), "\n"); strings.Contains(stderr, "UDP") != (name == "alone") {
				t.Errorf("warnings: %q; want one about UDP only without TCP listeners", stderr)
			}
		})
	}
}

// TestUntilExec: a process that entered the container after the start is the container's
// own, and so are its connections to the server.
func TestUntilExec(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	a := ns.bootUntil("stage", "quiet", append(quiet1sFlags, "--max-delay=4"), helperCommand("app", "127.0.0.1:0")...)
	check := a.execProgram()
	start := a.trigger()
	a.awaitEvents()
	check.do("talk " + a.addr("127.0.0.1"))
	a.wantHoldSince(start, quiet1s, "quiet")
}
