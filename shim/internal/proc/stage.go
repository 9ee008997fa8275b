package proc

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// The second stage. Go resets every disposition between fork and exec, and has
// no hook there. So where the command is to inherit blocked or ignored signals,
// or must find its own pid in LISTEN_PID where ours was (sd_listen_fds(3)), our
// own program is executed in its place: it sets them right, and becomes the
// command. The pid stays the same.

// stageName is the second stage's argv[0].
const stageName = "lameduck-stage"

// errNoStage is a system on which our own program cannot be found again.
var errNoStage = errors.New("no second stage")

// untouched are the signals that we leave ignored as they were; see sig.
var untouched = sig.SetOf(32, 33)

// listenPID begins the variable that says whom descriptors were passed to.
const listenPID = "LISTEN_PID="

// staged reports whether there is anything for the second stage to do.
func (c *Command) staged() bool {
	return c.Blocked|c.Ignored.Without(untouched) != 0 ||
		slices.Contains(c.Env, listenPID+strconv.Itoa(os.Getpid()))
}

// startStaged starts the second stage and waits until it has become the
// command, or has told why it could not: a signal sent in between would be
// lost on the stage.
func (c *Command) startStaged() (pid int, err error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, &StartError{Command: c.Argv[0], Err: err}
	}
	tell, listen := pipe[1], pipe[0]
	defer unix.Close(listen)
	unix.FcntlInt(uintptr(tell), unix.F_SETFD, 0) // the stage is to inherit it
	argv := append([]string{stageName, strconv.Itoa(tell), strconv.Itoa(os.Getpid()), hex(c.Blocked), hex(c.Ignored)}, c.Argv...)
	err = errNoStage
	for _, self := range ourselves() {
		if pid, err = c.forkExec(self, argv, c.Env); err == nil {
			break
		}
	}
	unix.Close(tell)
	if err != nil {
		return 0, errNoStage
	}
	if failed := readFailure(listen); failed != nil {
		unix.Wait4(pid, nil, 0, nil)
		failed.Command = c.Argv[0]
		return 0, failed
	}
	return pid, nil
}

func hex(set sig.Set) string { return strconv.FormatUint(uint64(set), 16) }

// readFailure reads what the stage tells: nothing where it has become the
// command, else the errno and whether the file was found.
func readFailure(fd int) *StartError {
	var told [2]byte
	for {
		n, err := unix.Read(fd, told[:])
		switch {
		case err == unix.EINTR:
			continue
		case n < len(told):
			return nil
		}
		return &StartError{Err: syscall.Errno(told[0]), found: told[1] != 0}
	}
}

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
	if i := slices.Index(env, listenPID+args[2]); i >= 0 {
		env[i] = listenPID + strconv.Itoa(os.Getpid())
	}
	var failed *StartError
	sig.Unblocked(func() {
		inherit(unhex(args[3]), unhex(args[4]))
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
