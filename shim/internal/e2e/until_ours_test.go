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
		at          time.Duration
		why         string
	}{
		"later":                     {"talk", false, true, "--log-level=warn", instant, "quiet"},
		"by exec":                   {"talk", true, false, "--log-level=warn", instant, "quiet"},
		"short ones":                {"call", false, false, "--log-level=warn", 4 * time.Second, "ceiling"},
		"short ones of peers named": {"call", true, true, "--ignore-peer=127.0.0.0/8", instant, "quiet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			a := p.holding("stage", "quiet", append(brisk, "--max-delay=4", c.flag), helperCommand("app", "127.0.0.1:0")...)
			by := a
			if c.exec {
				by = a.exec()
			}
			if !c.later {
				by.does(c.command + " " + a.at("127.0.0.1"))
			}
			start := a.stops()
			if c.later {
				a.looks()
				by.does(c.command + " " + a.at("127.0.0.1"))
			}
			a.wantHoldSince(start, c.at, c.why)
		})
	}
}

// exec puts a process into the container, as a health check is.
func (a *app) exec() *app {
	a.t.Helper()
	needs(a.t, "nsenter")
	words := append([]string{"nsenter", "-t", strconv.Itoa(a.cmd.Process.Pid), "-p", "-m", "-n"}, helperCommand("app")...)
	b := &app{&serverBox{box: newProgram(a.t, nil, syscall.SysProcAttr{}, words...)}, a.place}
	b.run()
	b.out.wait(a.t, "ready")
	return b
}

// TestUntilUnreadable: where a process's descriptors cannot be seen, "could not
// look" is not "there is none": the namespace's ports count, the neighbours' too.
func TestUntilUnreadable(t *testing.T) {
	t.Parallel()
	if !isRoot() {
		t.Skip("only root can become somebody else")
	}
	t.Run("its own", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		a := p.holding("stage:no-ptrace", "quiet", brisk, helperCommand("as", "1000", "app", "127.0.0.1:0")...)
		a.stops()
		end := steadily(200*time.Millisecond, func() { a.shortConn("127.0.0.1") })
		time.Sleep(2 * instant) // so long it is busy
		end()
		a.still("there had just been a request")
		a.wantHoldSince(time.Now(), instant-300*time.Millisecond, "quiet")
		a.reports("seen by sock_diag, the network namespace")
	})
	t.Run("a neighbour's", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		busy := p.neighbour()
		p.neighbour().does("call " + busy.at("127.0.0.1"))
		a := p.holding("stage:no-ptrace", "quiet", append(brisk, "--max-delay=3"), helperCommand("as", "1000", "app")...)
		start := a.stops()
		a.wantHoldSince(start, 3*time.Second, "ceiling")
	})
	t.Run("nobody's", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		a := p.holding("stage:no-ptrace", "quiet", brisk, helperCommand("as", "1000", "app")...)
		start := a.stops()
		a.wantHoldSince(start, 0, "no_listener") // nobody listens at all
	})
	t.Run("ports given", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		busy := p.neighbour()
		p.neighbour().does("call " + busy.at("127.0.0.1"))
		a := p.holding("stage:no-ptrace", "quiet", append(brisk, "--count-port=7070"), helperCommand("as", "1000", "app", "127.0.0.1:7070")...)
		start := a.stops()
		a.wantHoldSince(start, instant, "quiet")
		a.reports("seen by sock_diag, the ports given")
	})
}

// TestUntilNested: control groups below ours are ours, as systemd's in a container;
// so is one of ours whose descriptors cannot be seen. The neighbour's are not.
func TestUntilNested(t *testing.T) {
	t.Parallel()
	if !isRoot() {
		t.Skip("only root can become somebody else")
	}
	for name, c := range map[string]struct {
		listens string
		at      time.Duration
		why     string
	}{
		"a server": {"127.0.0.1:0", 3 * instant, "quiet"},
		"a worker": {"", 0, "no_listener"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := group2(t)
			below := filepath.Join(dir, "below")
			if err := os.Mkdir(below, 0o755); err != nil {
				t.Skip("no control group below ours: ", err)
			}
			t.Cleanup(func() { testutil.Eventually(t, "that below is empty", func() bool { return os.Remove(below) == nil }) })
			p := newPlace(t)
			busy, third := p.neighbour(), p.neighbour()
			busy.does("call " + third.at("127.0.0.1"))
			move := fmt.Sprintf("echo 0 > %s/cgroup.procs; exec \"$@\"", below)
			words := helperCommand("as", "1000", "app")
			if c.listens != "" {
				words = append(words, c.listens)
			}
			a := p.holding("stage:no-ptrace,cgroup="+dir, "quiet", brisk, append([]string{"sh", "-c", move, "sh"}, words...)...)
			start := a.stops()
			if c.listens != "" {
				end := steadily(90*time.Millisecond, func() { a.shortConn("127.0.0.1") })
				time.Sleep(time.Until(start.Add(2 * instant))) // so long it is busy
				end()
				a.still("there had just been a request")
			}
			a.wantHoldSince(start, c.at-300*time.Millisecond, c.why)
		})
	}
}
