package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Tests with several containers in one network namespace, as in a pod.

// scopes are the stages for each way to tell the container's own listeners from the
// neighbors'.
var scopes = map[string]string{
	"descriptors":         "stage",
	"descriptors, nobody": "stage:uid=65534",
	"cgroup":              "stage:cgroup=",
	"cgroup, nobody":      "stage:cgroup=,uid=65534",
}

// inEachScope runs a test in parallel for every scope, each in a new network namespace.
func inEachScope(t *testing.T, test func(t *testing.T, ns *namespace, stage string)) {
	t.Parallel()
	for name := range scopes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newNamespace(t), scopeStage(t, name))
		})
	}
}

// scopeStage returns the stage for a scope, after making the control group.
func scopeStage(t *testing.T, name string) string {
	t.Helper()
	switch stage := scopes[name]; name {
	case "cgroup":
		return stage + string(newCgroupV2(t))
	case "cgroup, nobody":
		return fmt.Sprintf("stage:cgroup=%s,uid=65534", newCgroupV2(t))
	default:
		if own := ownCgroupV2(); own != "/" {
			t.Skipf("the containers of this test share the control group %q, by which lameduck tells containers apart", own)
		}
		return stage
	}
}

// neighbor boots another container in the namespace, without a control group of its own.
func (ns *namespace) neighbor() *app {
	ns.t.Helper()
	return ns.boot("stage", helperCommand("app", "[::]:0")...)
}

// TestUntilPod: traffic at another container's port does not prolong the hold.
func TestUntilPod(t *testing.T) {
	inEachScope(t, func(t *testing.T, ns *namespace, stage string) {
		busy, third := ns.neighbor(), ns.neighbor()
		a := ns.bootUntil(stage, "drained", quiet1sFlags, helperCommand("app", "127.0.0.1:0")...)
		busy.do("call " + third.addr("127.0.0.1"))
		third.do("call " + busy.addr("::1"))
		a.do("open " + busy.addr("127.0.0.1")) // an outbound connection does not count either
		a.shortConn("127.0.0.1")
		start := a.trigger()
		a.wantHoldSince(start, quiet1s, "drained")
		scope := "descriptors"
		if strings.Contains(stage, "cgroup") {
			scope = "cgroup"
		}
		a.wantSource("sock_diag", scope)
	})
}

// TestUntilSidecar: a neighbor's connections to the container's port count, although they
// come over loopback.
func TestUntilSidecar(t *testing.T) {
	inEachScope(t, func(t *testing.T, ns *namespace, stage string) {
		mesh := ns.neighbor()
		a := ns.bootUntil(stage, "quiet", quiet1sFlags, helperCommand("app", "[::]:0")...)
		a.trigger()
		repeatFor(3*quiet1s, 300*time.Millisecond, func() {
			mesh.sendLine("open " + a.addr("127.0.0.6"))
		})
		a.wantHolding("the neighbor had just connected")
		a.wantHoldSince(time.Now(), quiet1s-400*time.Millisecond, "quiet")
	})
}

// TestUntilProxy: a proxy's hold lasts until the app in the other container has closed
// its connections. The proxy's own connections to other servers do not count.
func TestUntilProxy(t *testing.T) {
	inEachScope(t, func(t *testing.T, ns *namespace, stage string) {
		database := ns.listen()
		client := ns.neighbor()
		proxy := ns.bootUntil(stage, "drained", quiet1sFlags, helperCommand("proxy", "127.0.0.1:0", database)...)
		client.do("open " + proxy.addr("127.0.0.1"))
		client.do("open " + proxy.addr("127.0.0.1"))
		proxy.trigger()
		time.Sleep(2 * quiet1s) // idle connections, for longer than --quiet-for
		proxy.wantHolding("the app was connected")
		client.do("shut")
		proxy.wantHoldSince(time.Now(), 0, "drained")
		proxy.wantOpen(0)
	})
}

// TestUntilWorker: a command without listeners gets TERM at once, or after the floor if a
// floor is given, however busy the neighbors are.
func TestUntilWorker(t *testing.T) {
	t.Parallel()
	for name := range scopes {
		for floor, flags := range map[string][]string{
			"at once":   {"--quiet-for=1", "--grace-period=30"},
			"its floor": append(quiet1sFlags, "--delay=1"),
		} {
			t.Run(name+"/"+floor, func(t *testing.T) {
				t.Parallel()
				ns := newNamespace(t)
				busy, third := ns.neighbor(), ns.neighbor()
				a := ns.bootUntil(scopeStage(t, name), "drained", flags, helperCommand("app")...)
				busy.do("call " + third.addr("127.0.0.1"))
				a.do("call " + busy.addr("127.0.0.1")) // the command is only a client
				start := a.trigger()
				if floor == "at once" {
					a.wantHoldSince(start, 0, "no_listener")
				} else {
					a.wantHoldSince(start, time.Second, "no_listener")
				}
			})
		}
	}
}
