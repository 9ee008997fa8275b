package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Several containers in one network namespace, as in a pod.

// ways are how one's own listeners are told from the neighbours'.
var scopes = map[string]string{
	"descriptors":         "stage",
	"descriptors, nobody": "stage:uid=65534",
	"cgroup":              "stage:cgroup=",
	"cgroup, nobody":      "stage:cgroup=,uid=65534",
}

// way is the stage, with a control group made for it.
func scopeStage(t *testing.T, name string) string {
	t.Helper()
	switch stage := scopes[name]; name {
	case "cgroup":
		return stage + string(newCgroupV2(t))
	case "cgroup, nobody":
		return fmt.Sprintf("stage:cgroup=%s,uid=65534", newCgroupV2(t))
	default:
		if own := ownCgroupV2(); own != "/" {
			t.Skipf("all of us are in the control group %q, which tells them apart no longer", own)
		}
		return stage
	}
}

// neighbour starts another container, in no control group of its own.
func (ns *namespace) neighbor() *app {
	ns.t.Helper()
	return ns.boot("stage", helperCommand("app", "[::]:0")...)
}

// TestUntilPod: the other container's traffic, on its own port, does not hold
// ours.
func TestUntilPod(t *testing.T) {
	t.Parallel()
	for name := range scopes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			busy, third := ns.neighbor(), ns.neighbor()
			a := ns.bootUntil(scopeStage(t, name), "drained", quiet1sFlags, helperCommand("app", "127.0.0.1:0")...)
			busy.do("call " + third.addr("127.0.0.1"))
			third.do("call " + busy.addr("::1"))
			a.do("open " + busy.addr("127.0.0.1")) // of no account either
			a.shortConn("127.0.0.1")
			start := a.trigger()
			a.wantHoldSince(start, quiet1s, "drained")
			a.wantReport("seen by sock_diag, our " + map[bool]string{true: "control group", false: "processes' descriptors"}[strings.HasPrefix(name, "cgroup")])
		})
	}
}

// TestUntilSidecar: the neighbour's connections to our port do count, though they
// come by loopback.
func TestUntilSidecar(t *testing.T) {
	t.Parallel()
	for name := range scopes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			mesh := ns.neighbor()
			a := ns.bootUntil(scopeStage(t, name), "quiet", quiet1sFlags, helperCommand("app", "[::]:0")...)
			a.trigger()
			end := repeatEvery(300*time.Millisecond, func() {
				mesh.sendLine("open " + a.addr("127.0.0.6"))
			})
			time.Sleep(3 * quiet1s) // so long it is busy
			end()
			a.wantHolding("the neighbour had just called")
			a.wantHoldSince(time.Now(), quiet1s-400*time.Millisecond, "quiet")
		})
	}
}

// TestUntilProxy: a proxy is drained when its app, in the other container, has let
// go; what it keeps open to elsewhere is not waited for.
func TestUntilProxy(t *testing.T) {
	t.Parallel()
	for name := range scopes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			database := ns.listen()
			client := ns.neighbor()
			proxy := ns.bootUntil(scopeStage(t, name), "drained", quiet1sFlags, helperCommand("proxy", "127.0.0.1:0", database)...)
			client.do("open " + proxy.addr("127.0.0.1"))
			client.do("open " + proxy.addr("127.0.0.1"))
			proxy.trigger()
			time.Sleep(2 * quiet1s) // quiet it is
			proxy.wantHolding("the app was connected")
			client.do("shut")
			proxy.wantHoldSince(time.Now(), 0, "drained")
			proxy.wantReport("0 open at the end")
		})
	}
}

// TestUntilWorker: who has no listener is told at once, however busy the
// neighbours are, unless a floor was given.
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
				a.do("call " + busy.addr("127.0.0.1")) // it is a client
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
