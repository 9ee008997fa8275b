package shim

import (
	"bytes"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// Hold holds beside the command of the container that it is executed in, which
// others stop, and returns when it is safe to do so; TERM ends it. An error means
// that it has not begun.
func Hold(cfg Config) error {
	proc.SetAside()
	p, err := cfg.plan(false, false)
	if err != nil || !cfg.Holds() {
		return err
	}
	p.hook = true
	return hold(cfg, p, hook(&cfg))
}

// Decline says, as Hold would, why there is no hold.
func Decline(cfg Config, why string) {
	l := &loop{kernel: hook(&cfg), cfg: &cfg}
	l.report("hold: " + why)
	l.flush()
}

// hook is the system of one, of which nobody sees what it says.
func hook(cfg *Config) kernel {
	k := system(cfg)
	k.line, k.flush = tee(k.line, k.flush, cfg.JSON)
	return k
}

func hold(cfg Config, p plan, k kernel) error {
	l := &loop{kernel: k, cfg: &cfg, plan: p, machine: stop.New(p.stop)}
	defer l.flush()
	if err := l.ready(); err != nil {
		return err
	}
	l.tell(stop.Event{Kind: stop.PreStop})
	l.serve()
	if why := l.machine.Record().Ended; why == stop.Ceiling || why == stop.Unobserved {
		l.log(Warn, "traffic may not have stopped: the hold has lasted as long as it may")
	}
	return nil
}

// tee says every line to PID 1's standard error too, since nobody sees what a hook
// says; unless it is ours.
func tee(line func(string), flush func(), inJSON bool) (func(string), func()) {
	var ours, theirs unix.Stat_t
	fd, err := unix.Open("/proc/1/fd/2", unix.O_WRONLY|unix.O_APPEND|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil || os.Getpid() == 1 {
		return line, flush
	}
	if unix.Fstat(2, &ours) == nil && unix.Fstat(fd, &theirs) == nil && ours.Dev == theirs.Dev && ours.Ino == theirs.Ino {
		unix.Close(fd)
		return line, flush
	}
	out := speaker(fd, inJSON)
	return func(text string) { line(text); out.Line(text) }, func() { flush(); out.Flush() }
}

// marker is in every program of ours.
const marker = "lameduck-init/lameduck"

// Entrypoint is the command line and the environment of PID 1, where its program
// is a lameduck, under whatever name. An environment that cannot be read is nil.
func Entrypoint() (argv, env []string, ours bool) {
	argv = words("/proc/1/cmdline")
	if len(argv) == 0 || os.Getpid() == 1 {
		return nil, nil, false
	}
	exe, err := os.Readlink("/proc/1/exe")
	switch {
	case err != nil: // another user's
		ours = path.Base(argv[0]) == "lameduck"
	default:
		ours = path.Base(exe) == "lameduck" || contains("/proc/1/exe", marker)
	}
	return argv, words("/proc/1/environ"), ours
}

// words are the strings of a file that ends each with a zero; nil where it cannot
// be read.
func words(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	if len(text) == 0 {
		return []string{}
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// contains reports whether text is in the first part of a file, which is far more
// than we have.
func contains(path, text string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	buf := make([]byte, 0, 1<<16)
	for range 256 {
		n, err := io.ReadFull(file, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case bytes.Contains(buf, []byte(text)):
			return true
		case err != nil:
			return false
		}
		buf = append(buf[:0], buf[len(buf)-len(text):]...)
	}
	return false
}
