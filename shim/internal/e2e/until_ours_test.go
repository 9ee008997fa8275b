package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Tests of which sockets count as the container's own.

// TestUntilItself: the container's connections to itself do not prolong the hold, even
// from a process that entered the container later. Connections shorter than a sample do
// not either, such as those of an exec probe, unless another container is seen: they could be
// of any process.
func TestUntilItself(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command     string
		exec, later bool // the client is a process that entered the container; the client starts after the trigger
		alone       bool // no other container is seen
		flag        string
		hold        time.Duration
		reason      string
	}{
		"later":                      {"talk", false, true, false, "--log-level=warn", quiet1s, "quiet"},
		"by exec":                    {"talk", true, false, false, "--log-level=warn", quiet1s, "quiet"},
		"short ones":                 {"call", true, false, true, "--log-level=warn", quiet1s, "quiet"},
		"short ones, and a neighbor": {"call", false, false, false, "--log-level=warn", 4 * time.Second, "ceiling"},
		"short ones of peers named":  {"call", true, true, false, "--ignore-peer=127.0.0.0/8", quiet1s, "quiet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			if c.alone {
				ns.other.Close()
			}
			a := ns.bootUntil("stage", "quiet", append(quiet1sFlags, "--max-delay=4", c.flag), helperCommand("app", "127.0.0.1:0")...)
			by := a
			if c.exec {
				by = a.execProgram()
			}
			if !c.later {
				by.do(c.command + " " + a.addr("127.0.0.1"))
			}
			start := a.trigger()
			if c.later {
				a.awaitEvents()
				by.do(c.command + " " + a.addr("127.0.0.1"))
			}
			a.wantHoldSince(start, c.hold, c.reason)
		})
	}
}

// execProgram starts a program in the container, as an exec health check does.
func (a *app) execProgram() *app {
	a.t.Helper()
	needs(a.t, "nsenter")
	words := append([]string{"nsenter", "-t", strconv.Itoa(a.cmd.Process.Pid), "-p", "-m", "-n"}, helperCommand("app")...)
	b := &app{&serverBox{box: newProgram(a.t, nil, syscall.SysProcAttr{}, words...)}, a.ns}
	b.run()
	b.out.wait(a.t, "ready")
	return b
}

// TestUntilUnreadable: if a process's descriptors cannot be read, lameduck does not
// conclude that the command has no listener: all ports of the network namespace count,
// the neighbors' included.
func TestUntilUnreadable(t *testing.T) {
	t.Parallel()
	if !isRoot() {
		t.Skip("only root can change its uid")
	}
	t.Run("its own", func(t *testing.T) {
		t.Parallel()
		ns := newNamespace(t)
		a := ns.bootUntil("stage:no-ptrace", "quiet", quiet1sFlags, helperCommand("as", "1000", "app", "127.0.0.1:0")...)
		a.trigger()
		repeatFor(2*quiet1s, 200*time.Millisecond, func() { a.shortConn("127.0.0.1") })
		a.wantHolding("a request had just ended")
		a.wantHoldSince(time.Now(), quiet1s-300*time.Millisecond, "quiet")
		a.wantSource("sock_diag", "namespace")
	})
	t.Run("a neighbor's", func(t *testing.T) {
		t.Parallel()
		ns := newNamespace(t)
		busy := ns.neighbor()
		ns.neighbor().do("call " + busy.addr("127.0.0.1"))
		a := ns.bootUntil("stage:no-ptrace", "quiet", append(quiet1sFlags, "--max-delay=3"), helperCommand("as", "1000", "app")...)
		start := a.trigger()
		a.wantHoldSince(start, 3*time.Second, "ceiling")
	})
	t.Run("nobody's", func(t *testing.T) {
		t.Parallel()
		ns := newNamespace(t)
		a := ns.bootUntil("stage:no-ptrace", "quiet", quiet1sFlags, helperCommand("as", "1000", "app")...)
		start := a.trigger()
		a.wantHoldSince(start, 0, "no_listener") // no process in the network namespace listens
	})
	t.Run("ports given", func(t *testing.T) {
		t.Parallel()
		ns := newNamespace(t)
		busy := ns.neighbor()
		ns.neighbor().do("call " + busy.addr("127.0.0.1"))
		a := ns.bootUntil("stage:no-ptrace", "quiet", append(quiet1sFlags, "--count-port=7070"), helperCommand("as", "1000", "app", "127.0.0.1:7070")...)
		start := a.trigger()
		a.wantHoldSince(start, quiet1s, "quiet")
		a.wantSource("sock_diag", "ports")
	})
}

// TestUntilNested: sockets of control groups below lameduck's own count, as with systemd
// in a container, even if the descriptors cannot be read. The neighbors' do not count.
func TestUntilNested(t *testing.T) {
	t.Parallel()
	if !isRoot() {
		t.Skip("only root can change its uid")
	}
	for name, c := range map[string]struct {
		listens string
		hold    time.Duration
		reason  string
	}{
		"a server": {"127.0.0.1:0", 3 * quiet1s, "quiet"},
		"a worker": {"", 0, "no_listener"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := string(newCgroupV2(t))
			below := filepath.Join(dir, "below")
			if err := os.Mkdir(below, 0o755); err != nil {
				t.Skip("cannot make a nested cgroup: ", err)
			}
			t.Cleanup(func() {
				testutil.Eventually(t, "the nested cgroup is removed", func() bool { return os.Remove(below) == nil })
			})
			ns := newNamespace(t)
			busy, third := ns.neighbor(), ns.neighbor()
			busy.do("call " + third.addr("127.0.0.1"))
			move := fmt.Sprintf("echo 0 > %s/cgroup.procs; exec \"$@\"", below)
			words := helperCommand("as", "1000", "app")
			if c.listens != "" {
				words = append(words, c.listens)
			}
			a := ns.bootUntil("stage:no-ptrace,cgroup="+dir, "quiet", quiet1sFlags, append([]string{"sh", "-c", move, "sh"}, words...)...)
			start := a.trigger()
			if c.listens != "" {
				repeatFor(time.Until(start.Add(2*quiet1s)), 90*time.Millisecond, func() { a.shortConn("127.0.0.1") })
				a.wantHolding("a request had just ended")
			}
			a.wantHoldSince(start, c.hold-300*time.Millisecond, c.reason)
		})
	}
}
