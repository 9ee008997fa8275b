package stop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// bootHealth starts a web server with --health in a network of its own, and returns the
// addresses of both.
func bootHealth(t *testing.T, s box.Setup, flags string) (b *box.Box, health, target string) {
	t.Helper()
	t.Parallel()
	s.Network = box.NewNetwork(t)
	health, target = box.FreeAddr(), box.FreeAddr()
	b = s.Boot(t, "--grace-period=30 --health="+health+"="+target+" "+flags, box.Helper("web", target)...)
	b.Ready()
	return b, health, target
}

// TestHealth: the answers to health checks before and during a stop. The server's own port
// keeps serving.
func TestHealth(t *testing.T) {
	for _, c := range box.Table(`
		case       | environment                      | flags                 | during
		outside    |                                  |                       | 503 stopping
		kubernetes | KUBERNETES_SERVICE_HOST=10.0.0.1 |                       | 200 mine
		by flag    | KUBERNETES_SERVICE_HOST=10.0.0.1 | --health-during=fail  | 503 stopping
		closed     |                                  | --health-during=close | refused
	`) {
		t.Run(c["case"], func(t *testing.T) {
			b, health, target := bootHealth(t, box.Setup{Env: strings.Fields(c["environment"])}, "--delay=1 "+c["flags"])
			if got := b.Get(health); got != "200 mine" {
				t.Errorf("before the stop: %s", got)
			}
			start := b.Trigger()
			testutil.Eventually(t, "checks get "+c["during"], func() bool { return b.Get(health) == c["during"] })
			if got := b.Get(target); got != "200 mine" {
				t.Errorf("a user's request during the stop: %s", got)
			}
			b.WantHold(start, time.Second, "elapsed")
		})
	}
}

// TestHealthIsNoTraffic: checks ten times a second, passed through to the target, prolong no
// hold, whatever the source of samples. Other requests do.
func TestHealthIsNoTraffic(t *testing.T) {
	for _, c := range box.Table(`
		case               | faults     | until   | others
		quiet              |            | quiet   |
		nobody             | uid=65534  | drained |
		no netlink         | no-netlink | quiet   |
		denied             | seccomp    | settled |
		others             |            | quiet   | yes
		others, no netlink | no-netlink | quiet   | yes
	`) {
		t.Run(c["case"], func(t *testing.T) {
			const quiet = 1500 * time.Millisecond
			b, health, target := bootHealth(t, box.Setup{Faults: c["faults"]},
				"--health-during=pass --quiet-for=1.5 --until="+c["until"])
			want := func(address string) func() {
				return func() {
					if got := b.Get(address); !strings.HasPrefix(got, "200 ") {
						t.Errorf("%s: %s", address, got)
					}
				}
			}
			endChecks := box.Repeat(100*time.Millisecond, want(health))
			last := b.Trigger()
			if c["others"] != "" {
				last = b.Busy(quiet, 100*time.Millisecond, want(target))
			}
			b.Out.Wait("got TERM")
			endChecks() // while the command still serves
			r := b.WantHold(last, quiet-200*time.Millisecond, c["until"])
			if c["others"] == "" && (r.Accepted != 0 || r.InFlight != 0) {
				t.Errorf("report %+v, want no connection", r)
			}
		})
	}
}
