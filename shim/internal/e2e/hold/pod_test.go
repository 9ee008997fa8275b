package hold_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestUntilPod: several containers in one network namespace, as in a pod, for each way to tell the
// container's own listeners from the neighbors'. A neighbor's connection to the server counts,
// although it comes over loopback, and a container without listeners is not held. What neighbors
// say to each other does not count, nor do connections of the container's processes, to itself too.
func TestUntilPod(t *testing.T) {
	t.Parallel()
	box.Each(t, `
		case                | scope       | faults
		descriptors         | descriptors |
		descriptors, nobody | descriptors | uid=65534
		cgroup              | cgroup      |
		cgroup, nobody      | cgroup      | uid=65534
	`, func(t *testing.T, c box.Row) {
		_, own, _ := strings.Cut("\n"+string(testutil.Must(os.ReadFile("/proc/self/cgroup"))), "\n0::")
		own, _, _ = strings.Cut(own, "\n")
		if c["scope"] != "cgroup" && len(own) > 1 {
			t.Skipf("the containers of this test share the control group %q, by which lameduck tells containers apart", own)
		}
		n := box.NewNetwork(t)
		start := func(addresses ...string) *box.Box {
			faults := c["faults"]
			if c["scope"] == "cgroup" {
				faults = "cgroup=" + newCgroup(t, own) + "," + faults
			}
			return box.Setup{Faults: faults, Network: n}.Catch(t, flags+"--until=drained", addresses...)
		}
		one, other := n.Neighbor(t), n.Neighbor(t)
		one.Do("call " + other.Addr("127.0.0.1"))
		other.Do("call " + one.Addr("::1"))

		server, app := start("[::]:0"), n.Neighbor(t)
		server.Do("call " + app.Addr("127.0.0.1"))
		server.Do("talk " + server.Addr("127.0.0.1"))
		if c["scope"] == "descriptors" && c["faults"] == "" { // a process that entered the container later, as an exec health check does
			box.Needs(t, "nsenter")
			enter := []string{"nsenter", "-t", strconv.Itoa(server.Pid()), "-p", "-m", "-n"}
			check := box.Setup{Outside: true}.Start(t, append(enter, box.Helper("catch")...)...)
			check.Ready()
			check.Do("talk " + server.Addr("127.0.0.1"))
		}
		app.Do("open " + server.Addr("127.0.0.6"))
		worker := start()
		worker.Do("call " + app.Addr("127.0.0.1"))

		server.Trigger()
		worker.WantHold(worker.Trigger(), 0, "no_listener")
		time.Sleep(2 * quiet) // an idle connection, for longer than --quiet-for
		server.WantHolding("the app was connected")
		shut := time.Now()
		app.Do("shut")
		r := server.WantHold(shut, 0, "drained")
		if r.Open != 0 || r.Scope != c["scope"] || r.Observer != "sock_diag" {
			t.Errorf("report %+v, want no open connection, and the scope %s", r, c["scope"])
		}
	})
}

// newCgroup makes a control group of version 2 below the test's own. Without that
// hierarchy newCgroup skips the test.
func newCgroup(t *testing.T, own string) string {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(root + "/cgroup.controllers"); err == nil {
			return box.MakeCgroup(t, root+own)
		}
	}
	t.Skip("no cgroup hierarchy of version 2")
	return ""
}
