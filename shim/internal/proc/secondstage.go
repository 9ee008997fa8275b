package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
)

// Go resets every signal disposition between fork and exec, and has no hook there. So if
// the command must inherit blocked or ignored signals, or must find its own pid in a
// variable that has ours, our own program is executed in the command's place:
// the second stage restores the signals, and becomes the command. The pid stays the same.
// The second stage also takes the terminal for a session of the command's own; Go's fork
// would take the terminal by force.
//
// The stage reports its progress through a pipe: stageRuns when it is about to execute the
// command, and after an error one byte more, the errno, and another if the file was found.

// stageName is the second stage's argv[0].
const stageName = "lameduck-stage"

// stageRuns is the first byte from the stage. Without that byte Go's runtime could not
// start: it exits with code 2 if it cannot start its threads.
const stageRuns = 1

// stagePatience bounds the wait for a stage that was stopped, or that executes the command
// from a file system that does not answer. Afterwards the loop goes on as if the command
// ran.
const stagePatience = 10 * time.Second

// errNoStage means that no second stage is needed, or that our own program cannot be found again.
var errNoStage = errors.New("no second stage")

// startSecondStage starts the second stage, if that has anything to do, and waits until it has become
// the command or failed: a signal sent to the stage would be lost.
func (c *Command) startSecondStage() (pid int, err error) {
	hasSignals := c.blocked|c.ignored.Without(sig.Internal) != 0
	if !hasSignals && !(c.Session && IsTerminal(0)) && !slices.Contains(c.Env, listenPID+c.addressee()) {
		return 0, errNoStage
	}
	from, to, err := os.Pipe()
	if err != nil {
		return 0, &StartError{Command: c.Argv[0], Err: errors.Unwrap(err)}
	}
	defer from.Close()
	fd := to.Fd()
	unix.FcntlInt(fd, unix.F_SETFD, 0) // the stage inherits it
	argv := []string{stageName, fmt.Sprint(fd), c.addressee(), fmt.Sprintf("%x", c.blocked), fmt.Sprintf("%x", c.ignored)}
	argv = append(argv, c.Argv...)
	for _, self := range ownPaths() {
		pid, err = c.forkExec(self, argv, hide(c.Env))
		if err == nil {
			break
		}
	}
	to.Close()
	switch err {
	case nil:
	case syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM: // without a stage the signals would be lost
		return 0, &StartError{Command: c.Argv[0], Err: err}
	default:
		return 0, errNoStage
	}
	report := readStage(from, stagePatience)
	if len(report) == 1 {
		return pid, nil
	}
	unix.Wait4(pid, nil, 0, nil)
	if len(report) == 0 {
		return 0, fmt.Errorf("cannot run %q: the second stage of the start ended early: raise the limit of processes "+
			"(pids.max, RLIMIT_NPROC), if there is one", c.Argv[0])
	}
	return 0, &StartError{Command: c.Argv[0], Err: syscall.Errno(report[1]), found: len(report) > 2}
}

// addressee returns the pid in the variables that must address the command. Variables that
// address lameduck are not meant for a background command.
func (c *Command) addressee() string {
	if c.Background {
		return "nobody"
	}
	return strconv.Itoa(os.Getpid())
}

// readStage reads the report of a stage, until the stage has become the command or has
// ended. After patience the stage counts as the command.
func readStage(from *os.File, patience time.Duration) (report []byte) {
	_ = from.SetReadDeadline(time.Now().Add(patience)) // if epoll is denied, the wait has no bound
	report, err := io.ReadAll(from)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return []byte{stageRuns}
	}
	return report
}

// SecondStage becomes the command if the program's arguments ask for the second stage, and
// otherwise returns. Either way Go's runtime uses one processor from now on: a second
// processor would fill caches of its own.
func SecondStage(args []string) {
	runtime.GOMAXPROCS(1)
	if len(args) < 6 || args[0] != stageName {
		return
	}
	report, _ := strconv.Atoi(args[1])
	unix.CloseOnExec(report)
	runtime.LockOSThread() // the mask is the thread's
	env := Environ()
	if i := slices.Index(env, listenPID+args[2]); i >= 0 {
		env[i] = listenPID + strconv.Itoa(os.Getpid())
	}
	if leadsSession() {
		unix.IoctlSetInt(0, unix.TIOCSCTTY, 0) // if no other session has the terminal
	}
	var failed error
	sigcatch.Unblocked(func() {
		for s := range unhex(args[4]).All {
			action(s, &sigaction{1}, nil) // SIG_IGN; Go's signal.Ignore cannot ignore SEGV and other faults
		}
		mask := unhex(args[3])
		unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&mask)), 0, 8, 0, 0)
		unix.Write(report, []byte{stageRuns})
		failed = execvp(args[5:], env, func(path string, argv []string) error {
			return syscall.Exec(path, argv, env)
		})
	})
	var start *StartError
	errors.As(failed, &start)
	errno, _ := start.Err.(syscall.Errno)
	outcome := []byte{byte(errno)}
	if start.found { // so what is missing is its interpreter
		outcome = append(outcome, 1)
	}
	unix.Write(report, outcome)
	os.Exit(1)
}

func unhex(text string) sig.Set {
	bits, _ := strconv.ParseUint(text, 16, 64)
	return sig.Set(bits)
}

// sigaction is the kernel's struct sigaction, the handler first. The zero value is the
// default action.
type sigaction [5]uintptr

// action is rt_sigaction(2). The only errors are of KILL and STOP, which cannot be changed.
func action(s sig.Signal, now, before *sigaction) {
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s),
		uintptr(unsafe.Pointer(now)), uintptr(unsafe.Pointer(before)), 8, 0, 0)
}

// listenPID names the process that inherits sockets by its PID; other processes ignore the
// sockets. See sd_listen_fds(3).
const listenPID = "LISTEN_PID="
