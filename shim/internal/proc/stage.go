package proc

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
)

// The second stage. Go resets every disposition between fork and exec, and has
// no hook there. So where the command is to inherit blocked or ignored signals,
// or must find its own pid in a variable that has ours (pidvars.go), our own
// program is executed in its place: it sets them right, and becomes the command.
// The pid stays the same. It also takes the terminal for a session of the command's
// own, which Go's fork would take by force.
//
// The stage tells through a pipe how far it came: stageRuns when it is about to
// execute the command, and after that, where it failed, two bytes: the errno, and
// whether the file was found.

// stageName is the second stage's argv[0].
const stageName = "lameduck-stage"

// stageRuns is the first byte from a stage. Where it is missing, Go's runtime could
// not start: it needs some threads, and ends with exit code 2 where it gets none.
const stageRuns = 1

// stagePatience bounds the wait for a stage that was stopped, or that executes the
// command from a file system that does not answer. After it the loop goes on as if
// the command ran.
const stagePatience = 10 * time.Second

// errNoStage is a system on which our own program cannot be found again.
var errNoStage = errors.New("no second stage")

// staged reports whether there is anything for the second stage to do.
func (c *Command) staged() bool {
	return c.Blocked|c.Ignored.Without(sig.Internal) != 0 || c.Session && IsTerminal(0) ||
		addresses(c.Env, c.addressee())
}

// startStaged starts the second stage and waits until it has become the
// command, or has told why it could not: a signal sent in between would be
// lost on the stage. The error is errNoStage where there is no program of ours.
func (c *Command) startStaged() (pid int, err error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, &StartError{Command: c.Argv[0], Err: err}
	}
	tell, listen := pipe[1], pipe[0]
	defer unix.Close(listen)
	unix.FcntlInt(uintptr(tell), unix.F_SETFD, 0) // the stage is to inherit it
	argv := append([]string{stageName, strconv.Itoa(tell), c.addressee(), hex(c.Blocked), hex(c.Ignored)}, c.Argv...)
	err = errNoStage
	for _, self := range ourselves() {
		if pid, err = c.forkExec(self, argv, c.Env); err == nil {
			break
		}
	}
	unix.Close(tell)
	switch err {
	case nil:
		return pid, c.stageOutcome(pid, readStage(listen, stagePatience))
	case syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM: // without a stage the signals would be lost
		return 0, &StartError{Command: c.Argv[0], Err: err}
	}
	return 0, errNoStage
}

// addressee is the pid in the variables that are to address the command. What is
// announced to lameduck is not meant for a command aside.
func (c *Command) addressee() string {
	if c.Aside {
		return "nobody"
	}
	return strconv.Itoa(os.Getpid())
}

// stageOutcome is why the stage pid has not become the command, if it has not; told
// is what it wrote.
func (c *Command) stageOutcome(pid int, told []byte) error {
	switch len(told) {
	case 0:
		unix.Wait4(pid, nil, 0, nil)
		return fmt.Errorf("cannot run %q: the second stage of the start ended early: raise the limit of processes (pids.max, RLIMIT_NPROC), if there is one", c.Argv[0])
	case 3:
		unix.Wait4(pid, nil, 0, nil)
		return &StartError{Command: c.Argv[0], Err: syscall.Errno(told[1]), found: told[2] != 0}
	}
	return nil
}

// readStage reads what a stage tells, until the stage has become the command or is
// gone. After patience the stage counts as the command.
func readStage(fd int, patience time.Duration) (told []byte) {
	var buf [3]byte
	n := 0
	for end := time.Now().Add(patience); ; {
		left := time.Until(end)
		if left <= 0 {
			return []byte{stageRuns}
		}
		limit := unix.NsecToTimespec(int64(left))
		ready, err := unix.Ppoll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, &limit, nil)
		if err == unix.EINTR || err == nil && ready == 0 {
			continue
		}
		more, err := unix.Read(fd, buf[n:]) // where ppoll is denied, the wait has no bound
		if n += max(more, 0); more == 0 || err != nil && err != unix.EINTR {
			return buf[:n]
		}
	}
}

func hex(set sig.Set) string { return strconv.FormatUint(uint64(set), 16) }

// Stage is the second stage, if args, the program's, say so; else it returns, with
// Go's runtime on one processor: what runs on a second one fills caches of its own.
func Stage(args []string) {
	runtime.GOMAXPROCS(1)
	if len(args) < 6 || args[0] != stageName {
		return
	}
	tell, _ := strconv.Atoi(args[1])
	unix.CloseOnExec(tell)
	runtime.LockOSThread() // the mask is the thread's
	env := Restore(Environ())
	readdress(env, args[2])
	takeTerminal()
	var failed *StartError
	sigcatch.Unblocked(func() {
		inherit(unhex(args[3]), unhex(args[4]))
		unix.Write(tell, []byte{stageRuns})
		failed = execvp("", args[5:], env, func(path string, argv []string) error { return syscall.Exec(path, argv, env) })
	})
	errno, _ := failed.Err.(syscall.Errno)
	told := []byte{byte(errno), 0}
	if failed.found {
		told[1] = 1
	}
	unix.Write(tell, told)
	os.Exit(1)
}

func unhex(text string) sig.Set {
	bits, _ := strconv.ParseUint(text, 16, 64)
	return sig.Set(bits)
}

// inherit makes this thread what it was when lameduck was executed. Go's own
// signal.Ignore cannot ignore SEGV and its like.
func inherit(blocked, ignored sig.Set) {
	for s := range ignored.All {
		action(s, &sigaction{1}, nil) // SIG_IGN
	}
	mask := uint64(blocked)
	unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&mask)), 0, 8, 0, 0)
}

// sigaction is the kernel's struct sigaction, the handler first. The zero value
// is the default action.
type sigaction [5]uintptr

// action is rt_sigaction(2). Errors are for signals that nobody can change.
func action(s sig.Signal, now, before *sigaction) {
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(now)), uintptr(unsafe.Pointer(before)), 8, 0, 0)
}
