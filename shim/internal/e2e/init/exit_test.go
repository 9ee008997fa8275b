package init_test

import (
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// TestDieTogether: the command's exit code is not lost when one CHLD stands for its end and an
// orphan's.
func TestDieTogether(t *testing.T) {
	b := box.Setup{}.Boot(t, "", "sh", "-c", `( (echo up; read x) <&3 & ) 3<&0; echo up; read x; exit 7`)
	b.Out.WaitNth(2, "up")
	children := box.Children(b.Pid())
	b.Signal(sig.STOP)
	b.Stdin.Close()
	for _, pid := range children {
		box.AwaitState(t, pid, "Z")
	}
	b.Signal(sig.CONT)
	b.WantExit(7)
}

// alone waits until PID 1 and the shell are the only processes, so no zombie either.
const alone = `; until set -- /proc/[0-9]*; [ $# = 2 ]; do sleep 0.01; done`

// TestOddOrphans: killed, stopped and traced orphans are reaped.
func TestOddOrphans(t *testing.T) {
	box.Sessions(t, nil, strings.ReplaceAll(`
	case    | needs  | line | session
	killed  |        | LAMEDUCK sh -c '(sh -c "kill -KILL \$\$" &)ALONE' | exits 0
	stopped |        | LAMEDUCK sh -c '(sh -c "echo \$\$; kill -STOP \$\$" &) BAR (read pid; until grep -q "State:.T" /proc/$pid/status; do :; done; kill -CONT $pid)ALONE' | exits 0
	traced  | strace | LAMEDUCK sh -c '(strace -D -o /dev/null sh -c "exit 1" &)ALONE' | exits 0
	`, "ALONE", alone))
}

// TestOrphanStorm: of 100,000 orphans no zombie is left, and lameduck's memory does not grow
// by them. The test is not parallel, since the orphans take the whole machine.
func TestOrphanStorm(t *testing.T) {
	script := []string{"sh", "-c", `echo calm; for n in 0 1 2 3 4 5 6 7 8 9; do read go; "$0"; echo round; done; exec "$@"`,
		box.Assemble(t, "testdata/orphans.s")}
	b := box.Setup{}.Boot(t, "", append(script, box.Helper("catch")...)...)
	b.Out.Wait("calm")
	before := b.Gauge()
	for n := range 10 {
		b.Send("go")
		b.Out.WaitNth(n+1, "round")
	}
	b.Ready()
	b.Child()
	if after := b.Gauge(); after.Grown(before) {
		t.Errorf("%+v, before the orphans %+v", after, before)
	}
	b.Exit()
}
