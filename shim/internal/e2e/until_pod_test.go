package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Several containers in one network namespace, as in a pod.

// ways are how one's own listeners are told from the neighbours'.
var ways = map[string]string{
	"descriptors":         "stage",
	"descriptors, nobody": "stage:uid=65534",
	"cgroup":              "stage:cgroup=",
	"cgroup, nobody":      "stage:cgroup=,uid=65534",
}

// way is the stage, with a control group made for it.
func way(t *testing.T, name string) string {
	t.Helper()
	switch stage := ways[name]; name {
	case "cgroup":
		return stage + group2(t)
	case "cgroup, nobody":
		return fmt.Sprintf("stage:cgroup=%s,uid=65534", group2(t))
	default:
		if own := ownGroup2(); own != "/" {
			t.Skipf("all of us are in the control group %q, which tells them apart no longer", own)
		}
		return stage
	}
}

// neighbour starts another container, in no control group of its own.
func (p *place) neighbour() *app {
	p.t.Helper()
	return p.begin("stage", helperCommand("app", "[::]:0")...)
}

// ownGroup2 is our group in the hierarchy of version 2.
func ownGroup2() string {
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		if len(line) > 3 && line[:3] == "0::" {
			return strings.TrimSpace(line[3:])
		}
	}
	return "/"
}

// group2 makes a control group of version 2, which ends with the test.
func group2(t *testing.T) string {
	t.Helper()
	for _, top := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(top + "/cgroup.controllers"); err != nil {
			continue
		}
		dir, err := os.MkdirTemp(filepath.Join(top, ownGroup2()), "lameduck-test-")
		if err != nil {
			t.Skip("no control group of version 2: ", err)
		}
		t.Cleanup(func() {
			testutil.Eventually(t, "the control group is empty", func() bool { return os.Remove(dir) == nil })
		})
		return dir
	}
	t.Skip("no control groups of version 2")
	return ""
}

// TestUntilPod: the other container's traffic, on its own port, does not hold
// ours.
func TestUntilPod(t *testing.T) {
	t.Parallel()
	for name := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			busy, third := p.neighbour(), p.neighbour()
			a := p.holding(way(t, name), "drained", brisk, helperCommand("app", "127.0.0.1:0")...)
			busy.does("call " + third.at("127.0.0.1"))
			third.does("call " + busy.at("::1"))
			a.does("open " + busy.at("127.0.0.1")) // of no account either
			a.shortConn("127.0.0.1")
			start := a.stops()
			a.wantHoldSince(start, instant, "drained")
			a.reports("seen by sock_diag, our " + map[bool]string{true: "control group", false: "processes' descriptors"}[strings.HasPrefix(name, "cgroup")])
		})
	}
}

// TestUntilSidecar: the neighbour's connections to our port do count, though they
// come by loopback.
func TestUntilSidecar(t *testing.T) {
	t.Parallel()
	for name := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			mesh := p.neighbour()
			a := p.holding(way(t, name), "quiet", brisk, helperCommand("app", "[::]:0")...)
			a.stops()
			end := steadily(300*time.Millisecond, func() {
				mesh.sendLine("open " + a.at("127.0.0.6"))
			})
			time.Sleep(3 * instant) // so long it is busy
			end()
			a.still("the neighbour had just called")
			a.wantHoldSince(time.Now(), instant-400*time.Millisecond, "quiet")
		})
	}
}

// TestUntilProxy: a proxy is drained when its app, in the other container, has let
// go; what it keeps open to elsewhere is not waited for.
func TestUntilProxy(t *testing.T) {
	t.Parallel()
	for name := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			database := p.listen()
			client := p.neighbour()
			proxy := p.holding(way(t, name), "drained", brisk, helperCommand("proxy", "127.0.0.1:0", database)...)
			client.does("open " + proxy.at("127.0.0.1"))
			client.does("open " + proxy.at("127.0.0.1"))
			proxy.stops()
			time.Sleep(2 * instant) // quiet it is
			proxy.still("the app was connected")
			client.does("shut")
			proxy.wantHoldSince(time.Now(), 0, "drained")
			proxy.reports("0 open at the end")
		})
	}
}

// TestUntilWorker: who has no listener is told at once, however busy the
// neighbours are, unless a floor was given.
func TestUntilWorker(t *testing.T) {
	t.Parallel()
	for name := range ways {
		for floor, flags := range map[string][]string{
			"at once":   {"--quiet-for=1", "--grace-period=30"},
			"its floor": append(brisk, "--delay=1"),
		} {
			t.Run(name+"/"+floor, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				busy, third := p.neighbour(), p.neighbour()
				a := p.holding(way(t, name), "drained", flags, helperCommand("app")...)
				busy.does("call " + third.at("127.0.0.1"))
				a.does("call " + busy.at("127.0.0.1")) // it is a client
				start := a.stops()
				if floor == "at once" {
					a.wantHoldSince(start, 0, "no_listener")
				} else {
					a.wantHoldSince(start, time.Second, "no_listener")
				}
			})
		}
	}
}
