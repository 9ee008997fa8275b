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

// What is ours, and what cannot be told.

// TestUntilItself: the container's connections to itself do not count, nor those
// of a process that was put into it. Whose the short ones were, nobody can tell.
func TestUntilItself(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command     string
		exec, later bool // not by the command itself; not before the trigger
		flag        string
		hold        time.Duration
		reason      string
	}{
		"later":                     {"talk", false, true, "--log-level=warn", quiet1s, "quiet"},
		"by exec":                   {"talk", true, false, "--log-level=warn", quiet1s, "quiet"},
		"short ones":                {"call", false, false, "--log-level=warn", 4 * time.Second, "ceiling"},
		"short ones of peers named": {"call", true, true, "--ignore-peer=127.0.0.0/8", quiet1s, "quiet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
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

// exec puts a process into the container, as a health check is.
func (a *app) execProgram() *app {
	a.t.Helper()
	needs(a.t, "nsenter")
	words := append([]string{"nsenter", "-t", strconv.Itoa(a.cmd.Process.Pid), "-p", "-m", "-n"}, helperCommand("app")...)
	b := &app{&serverBox{box: newProgram(a.t, nil, syscall.SysProcAttr{}, words...)}, a.ns}
	b.run()
	b.out.wait(a.t, "ready")
	return b
}

// TestUntilUnreadable: where a process's descriptors cannot be seen, "could not
// look" is not "there is none": the namespace's ports count, the neighbours' too.
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
		end := repeatEvery(200*time.Millisecond, func() { a.shortConn("127.0.0.1") })
		time.Sleep(2 * quiet1s) // so long it is busy
		end()
		a.wantHolding("there had just been a request")
		a.wantHoldSince(time.Now(), quiet1s-300*time.Millisecond, "quiet")
		a.wantReport("seen by sock_diag, the network namespace")
	})
	t.Run("a neighbour's", func(t *testing.T) {
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
		a.wantHoldSince(start, 0, "no_listener") // nobody listens at all
	})
	t.Run("ports given", func(t *testing.T) {
		t.Parallel()
		ns := newNamespace(t)
		busy := ns.neighbor()
		ns.neighbor().do("call " + busy.addr("127.0.0.1"))
		a := ns.bootUntil("stage:no-ptrace", "quiet", append(quiet1sFlags, "--count-port=7070"), helperCommand("as", "1000", "app", "127.0.0.1:7070")...)
		start := a.trigger()
		a.wantHoldSince(start, quiet1s, "quiet")
		a.wantReport("seen by sock_diag, the ports given")
	})
}

// TestUntilNested: control groups below ours are ours, as systemd's in a container;
// so is one of ours whose descriptors cannot be seen. The neighbour's are not.
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
				t.Skip("no control group below ours: ", err)
			}
			t.Cleanup(func() { testutil.Eventually(t, "that below is empty", func() bool { return os.Remove(below) == nil }) })
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
				end := repeatEvery(90*time.Millisecond, func() { a.shortConn("127.0.0.1") })
				time.Sleep(time.Until(start.Add(2 * quiet1s))) // so long it is busy
				end()
				a.wantHolding("there had just been a request")
			}
			a.wantHoldSince(start, c.hold-300*time.Millisecond, c.reason)
		})
	}
}
