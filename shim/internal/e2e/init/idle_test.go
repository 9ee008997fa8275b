package init_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestIdle: after a number of signals, with every feature switched on, lameduck sleeps as
// long as no event arrives.
func TestIdle(t *testing.T) {
	t.Parallel()
	alive := filepath.Join(t.TempDir(), "alive")
	b := box.Catch(t, "--until=quiet --grace-period=30 --preset=auto --log-level=debug --kill-after=5 --on-stop=true --wait-gone=/no/such --health=127.0.0.1:9 --alive-file="+alive)
	for i := range 100 {
		b.Signal(sig.WINCH)
		b.Out.WaitNth(i+1, "got WINCH")
	}
	for end := time.Now().Add(testutil.Patience); ; {
		before := contextSwitches(b.Pid())
		time.Sleep(2 * time.Second) // the idle time that the test measures
		switches := contextSwitches(b.Pid()) - before
		if switches == 0 && before > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d context switches in two idle seconds, after %d", switches, before)
		}
	}
	b.Exit()
}

// contextSwitches returns how often the threads of a process have given up or lost the
// processor, see proc_pid_status(5).
func contextSwitches(pid int) (sum int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, task := range tasks {
		for _, line := range box.ReadLines(task) {
			if _, count, ok := strings.Cut(line, "voluntary_ctxt_switches:"); ok {
				n, _ := strconv.Atoi(strings.TrimSpace(count))
				sum += n
			}
		}
	}
	return sum
}

// TestUntilCostsNothing: before a stop, --until costs neither a descriptor nor a thread.
// The number of threads of Go's runtime varies from run to run, so the test compares the
// minimum over several runs.
func TestUntilCostsNothing(t *testing.T) {
	type counts struct{ threads, fds int }
	fewest := map[string]counts{}
	for round := range 40 {
		for _, flag := range []string{"--until=quiet", "--delay=5"} {
			b := box.Catch(t, flag+" --grace-period=30")
			box.AwaitState(t, b.Pid(), "S")
			list, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.Pid()))
			threads, _ := strconv.Atoi(box.Status(b.Pid(), "Threads"))
			now := counts{threads, len(list)}
			b.Exit()
			if old, ok := fewest[flag]; ok {
				now = counts{min(now.threads, old.threads), min(now.fds, old.fds)}
			}
			fewest[flag] = now
		}
		until, delay := fewest["--until=quiet"], fewest["--delay=5"]
		if round >= 7 && until.threads <= delay.threads && until.fds == delay.fds && until.fds >= 3 {
			return
		}
	}
	t.Errorf("fewest threads and descriptors: %v", fewest)
}

// TestOwnGroup: the command leads a process group, and lameduck is in another group.
func TestOwnGroup(t *testing.T) {
	b := box.Catch(t, "")
	command := b.Child()
	ownGroup := testutil.Must(unix.Getpgid(b.Pid()))
	commandGroup := testutil.Must(unix.Getpgid(command))
	if commandGroup != command || ownGroup == commandGroup {
		t.Errorf("lameduck is in group %d, the command (pid %d) in group %d; want the command to lead a group of its own", ownGroup, command, commandGroup)
	}
	b.Exit()
}
