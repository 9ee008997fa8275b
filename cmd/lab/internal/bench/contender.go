package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
)

// The names of contenders for other code.
const (
	ours = "lameduck"
	ss   = "ss" // prints sockets
)

// contender is an init, and the words before a command for the init to run the
// command.
type contender struct {
	name   string
	prefix []string
}

// inits returns the installed inits, and lameduck as the last.
func (b *bench) inits(lameduck string) (field []contender) {
	os.Setenv("PATH", os.Getenv("PATH")+":/usr/libexec/podman") // catatonit's
	for _, name := range []string{"tini-static", "dumb-init", "catatonit"} {
		if path, err := exec.LookPath(name); err == nil {
			field = append(field, contender{name, []string{path, "--"}})
		} else {
			fmt.Println(name, "is not installed, and left out")
		}
	}
	return append(field, contender{ours, []string{lameduck, "--"}})
}

// build makes a command from a folder. Those of raw have no runtime, and begin at an entry point.
func (b *bench) build(folder, name, entry string) (path string) {
	path = filepath.Join(b.dir, name)
	stage.Shell(`CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w $1" -o "$2" ./internal/bench/"$3"`,
		entry, path, folder)
	return path
}

// env is the environment of all programs: ours could change their behavior.
var env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

var null = must.Get(os.OpenFile(os.DevNull, os.O_RDWR, 0))

// boot starts c with a command as the first process of a new PID namespace. /proc stays ours.
func (c contender) boot(out, err *os.File, command ...string) (pid int) {
	words := slices.Concat(c.prefix, command)
	return must.Get(syscall.ForkExec(words[0], words, &syscall.ProcAttr{
		Env: env, Files: []uintptr{null.Fd(), out.Fd(), err.Fd()},
		Sys: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Setpgid: true},
	}))
}

// box is a PID namespace. The first process is a contender that runs a command, or the
// command itself if the contender is bare.
type box struct {
	contender
	pid int
	out *os.File // the output of both
}

// open boots c with a command, and waits until the command writes a byte.
func (c contender) open(command ...string) *box {
	out, in, err := os.Pipe()
	must.Do(err)
	defer in.Close()
	b := &box{c, c.boot(in, in, command...), out}
	b.hear()
	return b
}

// hear waits for a byte and blocks the thread: a poller would add time to the measurement.
func (b *box) hear() {
	n, err := unix.Read(int(b.out.Fd()), make([]byte, 1))
	must.Be(n == 1, "the command under %s ended early: %v", b.name, err)
}

// cpu returns the processor time of the first process, ended threads included. For the
// number of the clock see clock_getcpuclockid(3).
func (b *box) cpu() time.Duration {
	var t unix.Timespec
	must.Do(unix.ClockGettime(int32(^b.pid<<3|2), &t))
	return time.Duration(t.Nano())
}

// close kills the first process, and so the whole namespace.
func (b *box) close() {
	must.Do(unix.Kill(b.pid, unix.SIGKILL))
	wait(b.pid)
	b.out.Close()
}

// wait waits for the end of a child.
func wait(pid int) (status unix.WaitStatus, usage unix.Rusage) {
	must.Get(unix.Wait4(pid, &status, 0, &usage))
	return status, usage
}
