package e2e

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// The end of others: of orphans, of what is left, of our parent.

// TestDieTogether: the command and an orphan that end at the same moment.
func TestDieTogether(t *testing.T) {
	twins := `( (echo up; read x) <&3 & ) 3<&0; echo up; read x; exit 7`
	runMany(t, 500, func() {
		b := bootBare(t, "sh", "-c", twins)
		b.out.waitCount(t, 2)
		b.stdin.Close()
		b.wantExit(7)
	})
}

// TestLinger: what is left of the container gets its TERM, wherever it went, and
// is waited for; the code stays the command's.
func TestLinger(t *testing.T) {
	const family = `"$@" child & ("$@" orphan &); ("$@" daemon setsid &); "$@" deaf $DEAF & read x; exit 7`
	for name, c := range map[string]struct {
		env     []string
		linger  string
		done    []string
		atLeast time.Duration
		stage   string
	}{
		"all end":              {nil, "15", []string{"child", "orphan", "daemon", "deaf"}, 300 * time.Millisecond, "stage"},
		"one stays":            {[]string{"DEAF=stubborn"}, "2", []string{"child", "orphan", "daemon"}, 2 * time.Second, "stage"},
		"no pidfd_open":        {[]string{"DEAF=stubborn"}, "2", []string{"child", "orphan", "daemon"}, 2 * time.Second, fmt.Sprintf("stage:deny=%d:%d", unix.SYS_PIDFD_OPEN, unix.ENOSYS)},
		"no pidfd_send_signal": {[]string{"DEAF=stubborn"}, "2", []string{"child", "orphan", "daemon"}, 2 * time.Second, fmt.Sprintf("stage:deny=%d:%d", unix.SYS_PIDFD_SEND_SIGNAL, unix.EPERM)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bootStage(t, c.stage, c.env, append([]string{"--linger", c.linger, "--", "sh", "-c", family, "sh"}, helperCommand("remnant")...)...)
			b.out.waitCount(t, 4)
			start := time.Now()
			b.sendLine("")
			b.wantExit(7)
			if took := time.Since(start); took < c.atLeast || took > c.atLeast+3*time.Second {
				t.Errorf("the stop took %v", took)
			}
			for _, name := range c.done {
				b.out.wait(t, name+" done")
			}
		})
	}
}

// TestLingerLeaves: what a process that has had its TERM starts for its clean-up
// is left alone, however many others end meanwhile.
func TestLingerLeaves(t *testing.T) {
	const family = `
	(trap 'sh -c "echo cleaning; read x; echo cleaned" <&3; exit' TERM; echo up; while :; do sleep 0.05; done) 3<&0 &
	(trap 'exit' TERM; (trap '' TERM; echo up; sleep 0.3) & while :; do sleep 0.05; done) &
	read x; exit 7`
	b := boot(t, nil, "--log-level=debug", "--linger=15", "--", "sh", "-c", family)
	b.out.waitCount(t, 2)
	b.sendLine("")
	b.out.wait(t, "cleaning")
	reaped := func() int {
		b.err.mu.Lock()
		defer b.err.mu.Unlock()
		return countLines(b.err.collected, "lameduck: lingering: orphan")
	}
	testutil.Eventually(t, "others end", func() bool { return reaped() >= 2 })
	b.sendLine("")
	b.wantExit(7)
	b.out.wait(t, "cleaned")
}

// TestParentDeath: when our parent is killed, the command hears of it.
func TestParentDeath(t *testing.T) {
	t.Parallel()
	words := helperCommand("parent", append([]string{binary, "--parent-death-signal=USR1", "--"}, helperCommand("catch")...)...)
	b := newBox(t, "", nil)
	b.cmd.Path, b.cmd.Args, b.cmd.SysProcAttr = words[0], words, nil
	b.run()
	b.out.wait(t, "ready")
	b.cmd.Process.Kill()
	b.out.wait(t, "got USR1")
	b.sendLine("exit 0")
	select {
	case <-b.out.eof:
	case <-time.After(testutil.Patience):
		t.Error("they do not end")
	}
}

// TestParentDead: who has lost its parent before it starts, runs all the same.
func TestParentDead(t *testing.T) {
	t.Parallel()
	orphaned := `("$@" & ) ; read x`
	b := boot(t, nil, append([]string{"sh", "-c", orphaned, "sh", binary, "--parent-death-signal=TERM", "--"}, helperCommand("orphan")...)...)
	b.out.wait(t, "orphan")
	b.child()
	b.sendLine("")
	b.wantExit(0)
}
