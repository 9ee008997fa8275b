package init_test

import (
	"fmt"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// TestExitCodes covers exit codes, among them those of inits and shells, and death by every signal
// that kills by default.
func TestExitCodes(t *testing.T) {
	ends := map[string]int{}
	for _, code := range []int{0, 1, 2, 64, 99, 124, 125, 126, 127, 128, 129, 137, 143, 192, 254, 255} {
		ends[fmt.Sprintf("exit %d", code)] = code
	}
	harmless := sig.SetOf(sig.CHLD, sig.CONT, sig.URG, sig.WINCH, sig.STOP, sig.TSTP, sig.TTIN, sig.TTOU)
	for s := range all.Without(harmless).All {
		ends[fmt.Sprintf("kill -%d $$", int(s))] = 128 + int(s)
	}
	for command, code := range ends {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			box.Setup{Bare: true}.Boot(t, "", "sh", "-c", command).WantExit(code)
		})
	}
}

// TestDieTogether: the command's exit code is not lost when one CHLD stands for its end and an
// orphan's.
func TestDieTogether(t *testing.T) {
	b := box.Setup{Bare: true}.Boot(t, "", "sh", "-c", `( (echo up; read x) <&3 & ) 3<&0; echo up; read x; exit 7`)
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
	for name, odd := range map[string]string{
		"killed":  `(sh -c 'kill -KILL $$' &)`,
		"stopped": `(sh -c 'echo $$; kill -STOP $$' &) | (read pid; until grep -q 'State:.T' /proc/$pid/status; do :; done; kill -CONT $pid)`,
		"traced":  `(strace -D -o /dev/null sh -c 'exit 1' &)`,
	} {
		t.Run(name, func(t *testing.T) {
			if name == "traced" {
				box.Needs(t, "strace")
			}
			box.Boot(t, "", "sh", "-c", odd+alone).WantExit(0)
		})
	}
}

// TestOrphanStorm: of 100,000 orphans no zombie is left, and lameduck's memory does not grow
// by them. The test is not parallel, since the orphans take the whole machine.
func TestOrphanStorm(t *testing.T) {
	script := []string{"sh", "-c", `echo calm; for n in 0 1 2 3 4 5 6 7 8 9; do read go; "$0"; echo round; done; exec "$@"`,
		box.Assemble(t, "testdata/orphans.s")}
	b := box.Boot(t, "", append(script, box.Helper("catch")...)...)
	b.Out.Wait("calm")
	before := box.RSS(b.Pid())
	for n := range 10 {
		b.Send("go")
		b.Out.WaitNth(n+1, "round")
	}
	b.Ready()
	b.Child()
	if after := box.RSS(b.Pid()); before == 0 || after > before+box.Heap {
		t.Errorf("lameduck has %d KiB of memory after the orphans, had %d KiB", after, before)
	}
	b.Exit()
}
