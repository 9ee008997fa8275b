//go:build amd64 || arm64

package sigcatch

import (
	"io"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// startChild starts a process that ends with its input.
func startChild() (pid int, input io.Closer) {
	cmd := exec.Command("cat")
	input = testutil.Must(cmd.StdinPipe())
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return cmd.Process.Pid, input
}

// seen calls Next, and reaps as the loop does when it gets a CHLD, until a child has changed. It
// returns what it reaped.
func seen(pid int, awaited ...int) map[int]syscall.WaitStatus {
	all := map[int]syscall.WaitStatus{}
	for all[pid] == 0 {
		if Next(time.Now().Add(time.Minute), [2]int(append(awaited, 0, 0))) != sig.CHLD {
			continue
		}
		var status syscall.WaitStatus
		for {
			changed, _ := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
			if changed <= 0 {
				break
			}
			all[changed] = status
		}
	}
	return all
}

// TestOrphans: while the loop waits, the children that nobody awaits are reaped. An awaited child
// is left for the caller, whether it has stopped or ended; and so is any child if none is awaited.
func TestOrphans(t *testing.T) {
	noting, _, _ := handlers()
	install(t, sig.CHLD, noting)
	awaited, input := startChild()
	defer input.Close()
	const orphans = 20
	go func() {
		for range orphans {
			pid, input := startChild()
			input.Close()
			for syscall.Kill(pid, 0) == nil {
				time.Sleep(time.Millisecond)
			}
		}
		syscall.Kill(awaited, syscall.SIGSTOP)
	}()
	all := seen(awaited, 1, awaited)
	if !all[awaited].Stopped() || len(all) > orphans { // some may end before Next waits
		t.Errorf("the awaited child has status %#x; Next left %d of %d orphans", all[awaited], len(all)-1, orphans)
	}
	syscall.Kill(awaited, syscall.SIGKILL)
	if all := seen(awaited, awaited); !all[awaited].Signaled() {
		t.Errorf("a killed child has status %#x", all[awaited])
	}
	logged, input := startChild()
	syscall.Kill(logged, syscall.SIGKILL)
	seen(logged)
	input.Close()
}
