package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Tests of further promises in docs/contributing/faults.md.

// optionalSyscalls are the system calls of lameduck that a sandbox might deny. The system
// calls without which Go's runtime does not start are left out, as are kill and wait4.
var optionalSyscalls = map[string]int{
	"bind": unix.SYS_BIND, "chdir": unix.SYS_CHDIR, "clock_gettime": unix.SYS_CLOCK_GETTIME, "connect": unix.SYS_CONNECT, "faccessat": unix.SYS_FACCESSAT,
	"fstat": unix.SYS_FSTAT, "getdents64": unix.SYS_GETDENTS64, "getpgid": unix.SYS_GETPGID, "getppid": unix.SYS_GETPPID,
	"getrandom": unix.SYS_GETRANDOM, "getsockname": unix.SYS_GETSOCKNAME, "getsockopt": unix.SYS_GETSOCKOPT,
	"ioctl": unix.SYS_IOCTL, "listen": unix.SYS_LISTEN, "madvise": unix.SYS_MADVISE, "openat": unix.SYS_OPENAT,
	"pipe2": unix.SYS_PIPE2, "ppoll": unix.SYS_PPOLL, "prctl": unix.SYS_PRCTL, "pread64": unix.SYS_PREAD64,
	"prlimit64": unix.SYS_PRLIMIT64, "pwritev2": unix.SYS_PWRITEV2, "readlinkat": unix.SYS_READLINKAT,
	"recvfrom": unix.SYS_RECVFROM, "recvmsg": unix.SYS_RECVMSG, "sched_getaffinity": unix.SYS_SCHED_GETAFFINITY,
	"sched_yield": unix.SYS_SCHED_YIELD, "sendto": unix.SYS_SENDTO, "setpgid": unix.SYS_SETPGID, "setsockopt": unix.SYS_SETSOCKOPT,
	"socket": unix.SYS_SOCKET, "timer_create": unix.SYS_TIMER_CREATE, "timer_settime": unix.SYS_TIMER_SETTIME,
}

// TestDeniedSyscalls: with any one system call denied, the stop goes on. If the call is
// needed to start the command, lameduck exits with 126 and one line.
func TestDeniedSyscalls(t *testing.T) {
	program := pauseProgram(t)
	for name, number := range optionalSyscalls {
		for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSYS} {
			t.Run(fmt.Sprintf("%s, %s", name, unix.ErrnoName(errno)), func(t *testing.T) {
				t.Parallel()
				stage := fmt.Sprintf("stage:deny=%d:%d", number, int(errno))
				b := bootStage(t, stage, nil, "-d", "0.3", "--until=quiet", "--quiet-for=0.3", "--linger=1", "--", program)
				pid := b.cmd.Process.Pid
				testutil.Eventually(t, "the command runs, or lameduck has ended", func() bool {
					pids := children(pid)
					return hasEnded(pid) || len(pids) == 1 && exe(pids[0]) == program
				})
				b.signal(sig.TERM)
				code, stderr := b.waitExit(), b.err.all()
				if name == "pipe2" || name == "setpgid" { // needed to start the command
					if code != 126 || len(stderr) != 1 {
						t.Errorf("exit code %d, want 126 and one line; stderr:\n%v", code, stderr)
					}
				} else if code != 143 {
					t.Errorf("exit code %d, want 143; stderr:\n%v", code, stderr)
				}
			})
		}
	}
}

func exe(pid int) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return path
}

// TestIdle: after a number of signals, with every feature switched on, lameduck sleeps as
// long as no event arrives.
func TestIdle(t *testing.T) {
	t.Parallel()
	flags := []string{"--until=quiet", "--grace-period=30", "--preset=auto", "--log-level=debug", "--kill-after=5", "--on-stop=true",
		"--wait-gone=/no/such", "--alive-file=" + filepath.Join(t.TempDir(), "alive"), "--health=127.0.0.1:9", "--"}
	b := boot(t, nil, append(flags, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	b.forwardMany(100)
	pid := b.cmd.Process.Pid
	for end := time.Now().Add(testutil.Patience); ; {
		before := contextSwitches(pid)
		time.Sleep(2 * time.Second) // the idle time that the test measures
		switches := contextSwitches(pid) - before
		if switches == 0 && before > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d context switches in two idle seconds, after %d", switches, before)
		}
	}
	b.sendLine("exit 7")
	b.wantExit(7)
}

// contextSwitches returns how often the threads of a process have given up or lost the
// processor, see proc_pid_status(5).
func contextSwitches(pid int) (sum int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for line := range strings.Lines(string(text)) {
			if _, count, ok := strings.Cut(line, "voluntary_ctxt_switches:"); ok {
				n, _ := strconv.Atoi(strings.TrimSpace(count))
				sum += n
			}
		}
	}
	return sum
}

// TestOwnGroup: the command leads a process group, and lameduck is in another group.
func TestOwnGroup(t *testing.T) {
	b := boot(t, nil, append([]string{"--"}, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	command := b.child()
	ownGroup := testutil.Must(unix.Getpgid(b.cmd.Process.Pid))
	commandGroup := testutil.Must(unix.Getpgid(command))
	if commandGroup != command || ownGroup == commandGroup {
		t.Errorf("lameduck is in group %d, the command (pid %d) in group %d; want the command to lead a group of its own", ownGroup, command, commandGroup)
	}
	b.sendLine("exit 0")
	b.wantExit(0)
}
