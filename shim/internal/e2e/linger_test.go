package e2e

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Tests of orphans, of processes left after the command, and of lameduck's parent.

// TestDieTogether: the command's exit code is not lost when an orphan ends at the same
// moment.
func TestDieTogether(t *testing.T) {
	script := `( (echo up; read x) <&3 & ) 3<&0; echo up; read x; exit 7`
	runMany(t, 500, func() {
		b := bootBare(t, "sh", "-c", script)
		b.out.waitCount(t, 2)
		b.stdin.Close()
		b.wantExit(7)
	})
}

// TestLinger: with --linger, lameduck sends TERM to the processes left after the command, in
// every session, and waits for their end. The exit code stays the command's.
func TestLinger(t *testing.T) {
	const script = `"$@" child & ("$@" orphan &); ("$@" daemon setsid &); "$@" last $LAST & read x; exit 7`
	for name, c := range map[string]struct {
		env     []string
		linger  string
		done    []string
		atLeast time.Duration
		stage   string
	}{
		"all end":              {nil, "15", []string{"child", "orphan", "daemon", "last"}, 300 * time.Millisecond, "stage"},
		"one stays":            {[]string{"LAST=stubborn"}, "2", []string{"child", "orphan", "daemon"}, 2 * time.Second, "stage"},
		"no pidfd_open":        {[]string{"LAST=stubborn"}, "2", []string{"child", "orphan", "daemon"}, 2 * time.Second, fmt.Sprintf("stage:deny=%d:%d", unix.SYS_PIDFD_OPEN, unix.ENOSYS)},
		"no pidfd_send_signal": {[]string{"LAST=stubborn"}, "2", []string{"child", "orphan", "daemon"}, 2 * time.Second, fmt.Sprintf("stage:deny=%d:%d", unix.SYS_PIDFD_SEND_SIGNAL, unix.EPERM)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bootStage(t, c.stage, c.env, append([]string{"--linger", c.linger, "--", "sh", "-c", script, "sh"}, helperCommand("leftover")...)...)
			b.out.waitCount(t, 4)
			start := time.Now()
			b.sendLine("")
			b.wantExit(7)
			if took := time.Since(start); took < c.atLeast || took > c.atLeast+3*time.Second {
				t.Errorf("lameduck lingered for %v, want %v", took, c.atLeast)
			}
			for _, name := range c.done {
				b.out.wait(t, name+" done")
			}
		})
	}
}

// TestLingerLeaves: a process started after TERM, for the cleanup of a lingering process,
// gets no TERM, however many other processes end meanwhile.
func TestLingerLeaves(t *testing.T) {
	const script = `
	(trap 'sh -c "echo cleaning; read x; echo cleaned" <&3; exit' TERM; echo up; while :; do sleep 0.05; done) 3<&0 &
	(trap 'exit' TERM; (trap '' TERM; echo up; sleep 0.3) & while :; do sleep 0.05; done) &
	read x; exit 7`
	b := boot(t, nil, "--log-level=debug", "--linger=15", "--", "sh", "-c", script)
	b.out.waitCount(t, 2)
	b.sendLine("")
	b.out.wait(t, "cleaning")
	reaped := func() int {
		b.err.mu.Lock()
		defer b.err.mu.Unlock()
		return countLines(b.err.collected, "lameduck: lingering: orphan")
	}
	testutil.Eventually(t, "two other processes are reaped", func() bool { return reaped() >= 2 })
	b.sendLine("")
	b.wantExit(7)
	b.out.wait(t, "cleaned")
}

// TestParentDeath: when lameduck's parent is killed, the command gets the signal of
// --parent-death-signal.
func TestParentDeath(t *testing.T) {
	t.Parallel()
	words := helperCommand("parent", append([]string{binary, "--parent-death-signal=USR1", "--"}, helperCommand("catch")...)...)
	b := newBox(t, "", nil)
	b.cmd.Path, b.cmd.Args = words[0], words
	b.cmd.SysProcAttr = nil
	b.run()
	b.out.wait(t, "ready")
	b.cmd.Process.Kill()
	b.out.wait(t, "got USR1")
	b.sendLine("exit 0")
	select {
	case <-b.out.eof:
	case <-time.After(testutil.Patience):
		t.Error("lameduck and its command do not end")
	}
}

// TestParentDead: after the death of its parent, lameduck still starts and runs the command.
func TestParentDead(t *testing.T) {
	t.Parallel()
	orphaned := `("$@" & ) ; read x`
	b := boot(t, nil, append([]string{"sh", "-c", orphaned, "sh", binary, "--parent-death-signal=TERM", "--"}, helperCommand("orphan")...)...)
	b.out.wait(t, "orphan")
	b.child()
	b.sendLine("")
	b.wantExit(0)
}
