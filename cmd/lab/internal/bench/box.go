package main

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// box is a PID namespace. Its first process is a contender that runs a
// command, or the command itself if the contender is bare.
type box struct {
	contender
	pid int
	out *os.File // what the command says
}

// env is the environment of all: ours could change what they do.
var env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

// boot starts words as the first process of a new namespace, where /proc/self
// is right in our /proc too. It ends when we do, and Ctrl-C is for us alone.
func boot(words []string, out, err *os.File) (pid int) {
	return must(syscall.ForkExec(words[0], words, &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{null.Fd(), out.Fd(), err.Fd()},
		Sys:   &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}))
}

var null = must(os.OpenFile(os.DevNull, os.O_RDWR, 0))

// open boots c with a command, and waits until the command says a byte.
func open(c contender, command ...string) *box {
	out, in, err := os.Pipe()
	check(err)
	defer in.Close()
	b := &box{c, boot(c.with(command...), in, os.Stderr), out}
	in.Close()
	b.hear()
	return b
}

// hear waits for a byte from the command. It blocks the thread, since a poller
// would add steps of its own to what is measured.
func (b *box) hear() {
	var one [1]byte
	n, err := unix.Read(int(b.out.Fd()), one[:])
	for err == unix.EINTR {
		n, err = unix.Read(int(b.out.Fd()), one[:])
	}
	if check(err); n == 0 {
		check(fmt.Errorf("the command under %s ended early", b.name))
	}
}

// cpu is the processor time that the first process has used, with threads that
// are gone; for the number of its clock see clock_getcpuclockid(3).
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

// close kills the first process, and with it all.
func (b *box) close() {
	check(unix.Kill(b.pid, unix.SIGKILL))
	wait(b.pid)
	b.out.Close()
}
