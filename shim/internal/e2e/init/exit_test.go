package init_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// TestExitCodes covers all 256 exit codes, and death by every signal that kills by default.
func TestExitCodes(t *testing.T) {
	harmless := sig.SetOf(sig.CHLD, sig.CONT, sig.URG, sig.WINCH, sig.STOP, 20, 21, 22)
	box.Many(t, 256+64, func(round int) {
		command, code := fmt.Sprintf("exit %d", round), round
		if s := sig.Signal(round - 255); s > 0 {
			if harmless.Has(s) {
				return
			}
			command, code = fmt.Sprintf("kill -%d $$", int(s)), 128+int(s)
		}
		box.Setup{Bare: true}.Boot(t, "", "sh", "-c", command).WantExit(code)
	})
}

// TestDieTogether: the command's exit code is not lost when an orphan ends at the same
// moment.
func TestDieTogether(t *testing.T) {
	script := `( (echo up; read x) <&3 & ) 3<&0; echo up; read x; exit 7`
	box.Many(t, 500, func(int) {
		b := box.Setup{Bare: true}.Boot(t, "", "sh", "-c", script)
		b.Out.WaitNth(2, "up")
		b.Stdin.Close()
		b.WantExit(7)
	})
}

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
			box.Boot(t, "", append([]string{"sh", "-c", odd + `; exec "$@"`, "sh"}, box.Helper("zombies")...)...).WantExit(0)
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

// TestStreams: 100 MB pass from standard input to standard output unchanged.
func TestStreams(t *testing.T) {
	var in, stderr bytes.Buffer
	io.CopyN(&in, rand.NewChaCha8([32]byte{}), 100<<20)
	cmd := exec.Command(box.Binary, "cat")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in.Bytes()), &stderr
	if out, err := cmd.Output(); err != nil || !bytes.Equal(out, in.Bytes()) || stderr.Len() > 0 {
		t.Errorf("%d bytes come out as %d; %v; stderr: %s", in.Len(), len(out), err, &stderr)
	}
}

// TestUnread: help into a pipe without a reader is an error with 125.
func TestUnread(t *testing.T) {
	b := box.Setup{Outside: true}.Start(t, "sh", "-c", `read x; exec "$0" --help-all`, box.Binary)
	b.CloseOutput()
	b.Send("")
	b.WantExit(125)
	if stderr := fmt.Sprint(b.Err.All()); !strings.Contains(stderr, "broken pipe") {
		t.Errorf("stderr %s, want a broken pipe", stderr)
	}
}
