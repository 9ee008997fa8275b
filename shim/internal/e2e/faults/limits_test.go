package faults_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestFullPids: from some moment on the pids cgroup is full, so lameduck can start neither
// a process nor a thread: not for --on-stop, the sampler, a health check, a storm of
// real-time signals, or a write to a pipe whose reader has stopped reading. The number of
// threads that Go's runtime has and needs varies from run to run, hence the rounds.
func TestFullPids(t *testing.T) {
	for _, when := range []string{"before the trigger", "during the hold", "after the stop signal"} {
		for round, faults := range []string{"", "one-cpu,", ""} {
			t.Run(fmt.Sprint(when, round), func(t *testing.T) {
				t.Parallel()
				fillPids(t, when, faults, round > 0)
			})
		}
	}
}

func fillPids(t *testing.T, when, faults string, stuck bool) {
	group, health := newCgroup(t, "pids"), fmt.Sprintf("127.0.0.1:%d", box.FreePort())
	r, w, err := os.Pipe()
	testutil.Must(r, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	flags := "-d 1 --until=quiet --quiet-for=0.5 -r 35:0,36:0 --log-level=debug --wait-url=http://127.0.0.1:1/ --health=" + health
	if when == "before the trigger" {
		flags += " --on-stop=true" // cannot run
	}
	b := box.Setup{Faults: faults + "cgroup=" + group, Change: func(cmd *exec.Cmd) { cmd.Stderr = w }}.Catch(t, flags)
	before := box.Status(b.Pid(), "Threads")
	fillAt := func(moment, answer string) {
		if moment != when {
			return
		}
		limit(t, group, 1, "pids.max")
		if stuck {
			box.FillPipe(t, w)
		} else {
			go io.Copy(io.Discard, r)
		}
		for i := range 200 {
			for range 10 {
				unix.Kill(b.Pid(), unix.Signal(35+i%2)) // EAGAIN: the queue is full
			}
			b.Signal(sig.WINCH)
			b.Out.WaitNth(i+1, "got WINCH")
			testutil.Eventually(t, "checks get "+answer, func() bool { return b.Get(health) == answer })
		}
	}
	fillAt("before the trigger", "200 ok")
	wantTERM(b, func() { fillAt("during the hold", "503 stopping") })
	fillAt("after the stop signal", "503 stopping")
	if now := box.Status(b.Pid(), "Threads"); now != before {
		t.Errorf("lameduck has %s threads after the stop signal, had %s", now, before)
	}
	b.Exit()
}

// TestHoldFullPids: a hook needs no new process and no new thread during the hold.
func TestHoldFullPids(t *testing.T) {
	t.Parallel()
	group := newCgroup(t, "pids")
	script := `("$0" hold --delay=2 --quiet-for=0.2 --grace-period=30 --log-level=debug; echo hook exited $?) & exec "$@"`
	// GODEBUG keeps catch from executing itself again, during which PID 1's environment cannot be read.
	s := box.Setup{Faults: "cgroup=" + group, Env: []string{"GODEBUG=asyncpreemptoff=1"}}
	b := s.Start(t, append([]string{"/bin/sh", "-c", script, box.Binary}, box.Helper("catch")...)...)
	b.Acts = map[string]func(){"fill": func() { limit(t, group, 1, "pids.max") }}
	b.Play("ready / err holding 2 s / fill / hook exited 0 / > exit 7 / exits 7 / ended no_listener")
}

// TestForkBomb: the stop is in time beside a fork bomb, bounded by a cgroup or by the user's
// limit of processes. The test is not parallel, since the bomb takes the whole machine.
func TestForkBomb(t *testing.T) {
	box.Needs(t, "bash") // which tries again where it cannot fork
	const bomb = `bomb() { bomb | bomb; }; trap 'echo got TERM; read x; exit 7' TERM; (bomb) & echo ready; wait`
	for _, bound := range []string{"cgroup", "nproc=60,uid=61234"} {
		t.Run(bound, func(t *testing.T) {
			if bound == "cgroup" {
				group := newCgroup(t, "pids")
				limit(t, group, 60, "pids.max")
				bound = "cgroup=" + group
			}
			b := box.Setup{Faults: bound}.Boot(t, "-d 1", "bash", "-c", bomb)
			b.Ready()
			b.Err.Wait("fork: retry")
			wantTERM(b, func() {})
			b.Exit()
		})
	}
}

// TestMemory: the stop goes on while the memory cgroup is at its limit and the kernel's OOM
// killer kills other processes.
func TestMemory(t *testing.T) {
	t.Parallel()
	group := newCgroup(t, "memory")
	limit(t, group, 64<<20, "memory.limit_in_bytes", "memory.max")
	os.WriteFile(group+"/memory.swap.max", []byte("0"), 0) // if there is swap
	const greedy = `trap 'echo got TERM; read x; exit 7' TERM; echo ready
		(while :; do sh -c 'echo 1000 >/proc/$$/oom_score_adj; exec dd if=/dev/zero of=/dev/null bs=1G'; echo "hog $?"; done) & wait`
	b := box.Setup{Faults: "cgroup=" + group}.Boot(t, "-d 1", "sh", "-c", greedy)
	b.Out.WaitNth(3, "hog 137")
	wantTERM(b, func() { b.Out.WaitNth(6, "hog 137") })
	b.Out.WaitNth(9, "hog 137")
	b.Exit()
}

// TestLeast: 800 MiB of address space and 48 MB of data are enough, and a limit of 12 processes
// for lameduck and its command, 14 with a hold, and 18 if the command inherits ignored signals.
func TestLeast(t *testing.T) {
	box.NeedsRoot(t)
	box.Needs(t, "prlimit")
	for i, c := range box.Table(`
		faults      | processes | flags
		            | 12        |
		            | 14        | --until=quiet --grace-period=30 --health=127.0.0.1:9753
		            | 14        | --until=quiet --grace-period=30 --preset=auto
		ignore=INT, | 18        |
	`) {
		for range 10 {
			faults := fmt.Sprintf("%snproc=%s,uid=%d", c["faults"], c["processes"], 61300+i) // a user without processes
			line := fmt.Sprintf("prlimit --as=%d --data=48000000 %s %s true", 800<<20, box.Binary, c["flags"])
			box.Setup{Faults: faults}.Start(t, box.Words(line)...).WantExit(0)
		}
	}
}

// TestSecondStagePids: if the limit of processes has room for lameduck and no room for the
// second stage of the start, lameduck exits with 125 and names the limit. The failure never
// passes for the command's exit code.
func TestSecondStagePids(t *testing.T) {
	group := newCgroup(t, "pids")
	refused := 0
	for most := 6; ; most++ {
		limit(t, group, most, "pids.max")
		script := fmt.Sprintf("echo $$ >%s/cgroup.procs; trap '' INT; exec %s --log-level=debug true", group, box.Binary)
		cmd := exec.Command("sh", "-c", script)
		out, _ := cmd.CombinedOutput()
		code, stderr := cmd.ProcessState.ExitCode(), string(out)
		switch {
		case code == 125 && strings.HasSuffix(stderr,
			"raise the limit of processes (pids.max, RLIMIT_NPROC), if there is one\n"):
			refused++ // above this line are messages of Go's runtime
		case code == 125 && strings.Count(stderr, "\n") == 1: // no room for the fork
		case code == 0 && refused > 0:
			return
		case code == 0, most > 100, strings.Contains(stderr, "lameduck:"): // otherwise lameduck itself found no room
			t.Fatalf("limit of %d processes: exit code %d after %d refusals, stderr: %s", most, code, refused, stderr)
		}
	}
}

// deniedSyscalls are the system calls of lameduck that a sandbox might deny. The system
// calls without which Go's runtime does not start are left out, as is kill.
var deniedSyscalls = []int{
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2,
	unix.SYS_BIND, unix.SYS_CHDIR, unix.SYS_CLOCK_GETTIME, unix.SYS_CONNECT, unix.SYS_FACCESSAT, unix.SYS_FSTAT,
	unix.SYS_GETDENTS64, unix.SYS_GETPGID, unix.SYS_GETPPID, unix.SYS_GETRANDOM, unix.SYS_GETSOCKNAME, unix.SYS_GETSOCKOPT,
	unix.SYS_IOCTL, unix.SYS_LISTEN, unix.SYS_MADVISE, unix.SYS_OPENAT, unix.SYS_PIPE2, unix.SYS_PPOLL, unix.SYS_PRCTL,
	unix.SYS_PREAD64, unix.SYS_PRLIMIT64, unix.SYS_PWRITEV2, unix.SYS_READLINKAT, unix.SYS_RECVFROM, unix.SYS_RECVMSG,
	unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_YIELD, unix.SYS_SENDTO, unix.SYS_SETPGID, unix.SYS_SETSOCKOPT,
	unix.SYS_SOCKET, unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_WAITID,
}

// TestDeniedSyscalls: with any one system call denied, the stop goes on. If the call is
// needed to start the command, lameduck exits with 126 and one line; if the stop would need
// epoll, with 125 and one line. The command is a program without a loader, which needs none of
// the calls.
func TestDeniedSyscalls(t *testing.T) {
	program := box.Assemble(t, "testdata/pause.s")
	for _, number := range deniedSyscalls {
		for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSYS} {
			t.Run(fmt.Sprintf("%d, %s", number, unix.ErrnoName(errno)), func(t *testing.T) {
				t.Parallel()
				b := box.Setup{Faults: fmt.Sprintf("deny=%d:%d", number, int(errno))}.Boot(t,
					"-d 0.3 --until=quiet --quiet-for=0.3 --linger=1", program)
				testutil.Eventually(t, "the command runs, or lameduck has ended", func() bool {
					pids := box.Children(b.Pid())
					if len(pids) != 1 {
						return box.HasEnded(b.Pid())
					}
					path, _ := os.Readlink("/proc/" + strconv.Itoa(pids[0]) + "/exe")
					return path == program
				})
				b.Stop()
				code, says := 143, ""
				switch number {
				case unix.SYS_PIPE2, unix.SYS_SETPGID:
					code, says = 126, "cannot run"
				case unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2:
					code, says = 125, "cannot use epoll: "
				}
				b.WantExit(code)
				if said := b.Messages(); says != "" && (len(said) != 1 || !strings.Contains(said[0], says)) {
					t.Errorf("said %q, want one line with %q", said, says)
				}
			})
		}
	}
}
