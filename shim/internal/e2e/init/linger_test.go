package init_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
)

// TestLinger: with --linger, lameduck sends TERM to the processes left after the command, in
// every session, waits for their end, and kills what stays. The exit code stays the
// command's. Without /proc, kill(-1) replaces the descendants.
func TestLinger(t *testing.T) {
	const script = `
	slow='trap "sleep 0.3; echo $0 done; exit" TERM; echo $0 up; while :; do sleep 0.05; done'
	stubborn='trap "" TERM; echo $0 up; while :; do sleep 9; done'
	sh -c "$slow" child & (sh -c "$slow" orphan &); (setsid sh -c "$slow" daemon &); eval sh -c '"$'$LAST'"' last & read x; exit 7`
	denied := strings.NewReplacer("pidfd_open", strconv.Itoa(unix.SYS_PIDFD_OPEN), "pidfd_send_signal",
		strconv.Itoa(unix.SYS_PIDFD_SEND_SIGNAL))
	for _, c := range box.Table(`
		case                 | faults                   | last     | linger | at least
		all end              |                          | slow     | 15     | 300ms
		one stays            |                          | stubborn | 5      | 5s
		no pidfd_open        | deny=pidfd_open:38       | stubborn | 5      | 5s
		no pidfd_send_signal | deny=pidfd_send_signal:1 | stubborn | 5      | 5s
		no /proc             | no-proc                  | slow     | 15     | 300ms
		no /proc, one stays  | no-proc                  | stubborn | 5      | 5s
	`) {
		t.Run(c["case"], func(t *testing.T) {
			t.Parallel()
			s := box.Setup{Faults: denied.Replace(c["faults"]), Env: []string{"LAST=" + c["last"]}}
			b := s.Boot(t, "--linger="+c["linger"], "sh", "-c", script)
			b.Out.WaitNth(4, " up")
			start := time.Now()
			b.Send("")
			b.WantExit(7)
			if took := time.Since(start); took < c.Time("at least") || took > c.Time("at least")+box.Slack {
				t.Errorf("lameduck lingered for %v, want %s", took, c["at least"])
			}
			for _, name := range []string{"child", "orphan", "daemon"} {
				b.Out.Wait(name + " done")
			}
		})
	}
}

// TestLingerLeaves: a process started after TERM, for the cleanup of a lingering process,
// gets no TERM, however many other processes end meanwhile.
func TestLingerLeaves(t *testing.T) {
	const script = `
	(trap 'sh -c "echo cleaning; read x; echo cleaned" <&3; exit' TERM; echo up; while :; do sleep 0.05; done) 3<&0 &
	sh -c 'trap exit TERM; (trap "" TERM; echo up; while kill -0 $$; do sleep 0.01; done 2>/dev/null) & while :; do sleep 0.05; done' &
	read x; exit 7`
	b := box.Boot(t, "--log-level=debug --linger=15", "sh", "-c", script)
	b.Out.WaitNth(2, "up")
	b.Send("")
	b.Out.Wait("cleaning")
	b.Err.WaitNth(2, "lingering: orphan")
	b.Send("")
	b.WantExit(7)
	b.Out.Wait("cleaned")
}

// TestSubreaper: if a lameduck other than PID 1 cannot become a subreaper, it warns once and goes
// on; with --subreaper that is an error.
func TestSubreaper(t *testing.T) {
	b := box.Setup{Faults: "seccomp"}.Boot(t, "", box.Binary, "sh", "-c", "exit 7")
	b.WantExit(7)
	b.Err.Wait("orphans will not be reaped")
	box.Setup{Faults: "seccomp"}.Boot(t, "", box.Binary, "-s", "sh", "-c", "exit 7").WantExit(125)
}

// TestParentDeath: when lameduck's parent is killed, the command gets the signal of
// --parent-death-signal.
func TestParentDeath(t *testing.T) {
	words := append([]string{"sh", "-c", `exec 3<&0; "$@" <&3 & wait`, "sh"},
		box.Lameduck("--parent-death-signal=USR1", box.Helper("catch")...)...)
	b := box.Setup{Outside: true}.Start(t, words...)
	b.Ready()
	b.Cmd.Process.Kill()
	b.Out.Wait("got USR1")
	b.Send("exit 0")
	b.WaitExit()
}

// TestParentDead: after the death of its parent, lameduck still starts and runs the command.
func TestParentDead(t *testing.T) {
	words := append([]string{"sh", "-c", `("$@" &); read x`, "sh"},
		box.Lameduck("--parent-death-signal=TERM", "echo", "started")...)
	b := box.Boot(t, "", words...)
	b.Out.Wait("started")
	b.Send("")
	b.WantExit(0)
}
