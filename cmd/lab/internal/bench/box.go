package bench

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// box is a PID namespace. The first process is a contender that runs a command, or the
// command itself if the contender is bare.
type box struct {
	contender
	pid int
	out *os.File // the command's standard output
}

// env is the environment of all programs: ours could change their behavior.
var env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

// boot starts words as the first process of a new PID namespace, which ends with the
// benchmark. /proc stays that of the machine. The process group is a new one, so that
// Ctrl-C reaches the benchmark alone.
func boot(words []string, out, err *os.File) (pid int) {
	return must(syscall.ForkExec(words[0], words, &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{null.Fd(), out.Fd(), err.Fd()},
		Sys:   &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}))
}

var null = must(os.OpenFile(os.DevNull, os.O_RDWR, 0))

// open boots c with a command, and waits until the command writes a byte.
func open(c contender, command ...string) *box {
	out, in, err := os.Pipe()
	check(err)
	defer in.Close()
	b := &box{c, boot(c.with(command...), in, os.Stderr), out}
	in.Close()
	b.hear()
	return b
}

// hear waits for a byte from the command and blocks the thread: a poller would add time
// to the measurement.
func (b *box) hear() {
	var one [1]byte
	n, err := unix.Read(int(b.out.Fd()), one[:])
	for err == unix.EINTR {
		n, err = unix.Read(int(b.out.Fd()), one[:])
	}
	check(err)
	if n == 0 {
		check(fmt.Errorf("the command under %s ended early", b.name))
	}
}

// cpu returns the processor time of the first process, ended threads included. For the
// number of the clock see clock_getcpuclockid(3).
func (b *box) cpu() time.Duration {
	var t unix.Timespec
	check(unix.ClockGettime(int32(^b.pid<<3|2), &t))
	return time.Duration(t.Nano())
}

// wait waits for the end of a first process.
func wait(pid int) (status unix.WaitStatus, usage unix.Rusage) {
	for err := error(unix.EINTR); err == unix.EINTR; {
		_, err = unix.Wait4(pid, &status, 0, &usage)
	}
	return status, usage
}

// close kills the first process, and so the whole namespace.
func (b *box) close() {
	check(unix.Kill(b.pid, unix.SIGKILL))
	wait(b.pid)
	b.out.Close()
}
