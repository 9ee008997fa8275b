package stop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestHealth: health checks ten times a second are passed through before a stop, and answered by the
// mode during a stop. They prolong no hold, whatever the source of samples: the silence counts from
// a user's request, which the server's own port still serves.
func TestHealth(t *testing.T) {
	t.Parallel()
	box.Each(t, `
		case       | environment                      | faults     | flags                | during       | until
		outside    |                                  |            |                      | 503 stopping | quiet
		kubernetes | KUBERNETES_SERVICE_HOST=10.0.0.1 |            |                      | 200 mine     | quiet
		by flag    | KUBERNETES_SERVICE_HOST=10.0.0.1 |            | --health-during=fail | 503 stopping | settled
		closed     |                                  |            | --health-during=close | refused     | quiet
		nobody     |                                  | uid=65534  | --health-during=pass | 200 mine     | drained
		no netlink |                                  | no-netlink | --health-during=pass | 200 mine     | quiet
	`, func(t *testing.T, c box.Row) {
		const quiet = 1500 * time.Millisecond
		s := box.Setup{Faults: c["faults"], Env: strings.Fields(c["environment"]), Network: box.NewNetwork(t)}
		const health, target = "127.0.0.1:9000", "127.0.0.1:8080"
		b := s.Catch(t, "--grace-period=30 --quiet-for=1.5 --until="+c["until"]+" --health="+health+"="+target+" "+c["flags"], "http:"+target)
		want := func(address, answer string) {
			if got := b.Get(address); got != answer {
				t.Errorf("%s answers %s", address, got)
			}
		}
		want(health, "200 mine")
		b.Play("TERM / err holding")
		testutil.Eventually(t, "checks get "+c["during"], func() bool { return b.Get(health) == c["during"] })
		end := box.Repeat(100*time.Millisecond, func() { want(health, c["during"]) })
		last := time.Now()
		want(target, "200 mine") // a user's request
		b.Out.Wait("got TERM")
		end() // while the command still serves
		r := b.WantHold(last, quiet-200*time.Millisecond, c["until"])
		if r.Accepted > 1 || r.InFlight > 0 {
			t.Errorf("report %+v, want no connection but the user's", r)
		}
	})
}
