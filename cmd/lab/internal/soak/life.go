package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// life is one lameduck, from its start to its end.
type life struct {
	ctx   context.Context
	init  string
	port  int // of the server
	until time.Time
	rnd   *rand.Rand
	total *tally
	live  func(*life) error

	flags    []string
	adaptive bool   // a stop waits for silence, for seconds
	health   int    // the port for health checks; 0: none
	passes   bool   // they are passed on to the server
	alive    string // the alive-file; "": none

	cmd      *exec.Cmd
	pid      int
	stdin    io.Writer
	out, err *lines
	load     *load
	base     gauge
}

// begin lives one life. An error says how it was called, and what it said last.
func begin(ctx context.Context, init string, port int, until time.Time, rnd *rand.Rand, total *tally, live func(*life) error) error {
	dir, err := os.MkdirTemp("", "lameduck-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &life{ctx: ctx, init: init, port: port, until: until, rnd: rnd, total: total, live: live}
	l.choose(dir)
	if err := l.start(); err != nil {
		return err
	}
	err = l.course()
	if l.load != nil {
		l.load.end()
	}
	cancel() // kills what is left
	l.cmd.Wait()
	if err != nil {
		return fmt.Errorf("%w\n%s %s\n%s", err, init, strings.Join(l.flags, " "), l.err.tail())
	}
	total.add("lives", 1)
	return nil
}

// course is a life once it has been started.
func (l *life) course() (err error) {
	if _, err = l.out.wait("ready"); err != nil {
		return err
	}
	if l.base, err = read(l.pid); err != nil {
		return err
	}
	l.load = newLoad(l.port, l.total)
	if err = l.live(l); err == nil && l.alive != "" {
		if _, err := os.Stat(l.alive); err == nil {
			return fmt.Errorf("%s is still there", l.alive)
		}
	}
	return err
}

// choose picks flags at random; not --group, which would end what the command runs.
func (l *life) choose(dir string) {
	if strings.HasPrefix(l.init, "bad:") {
		return
	}
	maybe := func(flags ...string) bool {
		if l.rnd.IntN(2) == 0 {
			return false
		}
		l.flags = append(l.flags, flags...)
		return true
	}
	if l.adaptive = l.rnd.IntN(3) > 0; l.adaptive {
		until := []string{"settled", "quiet", "drained"}[l.rnd.IntN(3)]
		l.flags = []string{"--until=" + until, "--delay=0.2", "--quiet-for=2", "--max-delay=60", "--grace-period=100"}
		maybe("--on-stop=true")
		maybe("--wait-gone=" + filepath.Join(dir, "nobody"))
	} else {
		maybe("--delay=0.3")
	}
	maybe("--log-format=json")
	maybe("--log-level=debug")
	maybe("--drop-unhandled")
	maybe("--linger=1")
	maybe("--termination-log=" + filepath.Join(dir, "log"))
	if path := filepath.Join(dir, "alive"); maybe("--alive-file=" + path) {
		l.alive = path
	}
	health := fmt.Sprintf("--health=127.0.0.1:%d", l.port+1)
	if l.passes = l.rnd.IntN(2) == 0; l.passes {
		health += fmt.Sprintf("=127.0.0.1:%d", l.port)
	}
	if maybe(health) {
		l.health = l.port + 1
		maybe("--health-during=" + []string{"fail", "pass", "close"}[l.rnd.IntN(3)])
	}
}

// start starts it, as PID 1 of new namespaces.
func (l *life) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	init := append([]string{l.init}, append(l.flags, "--")...)
	if fault, ok := strings.CutPrefix(l.init, "bad:"); ok {
		init = []string{self, "bad", fault}
	}
	words := append(append([]string{self, "stage"}, init...), self, "server", fmt.Sprint(l.port))
	l.cmd = exec.CommandContext(l.ctx, words[0], words[1:]...)
	l.cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	stdin, err1 := l.cmd.StdinPipe()
	out, err2 := l.cmd.StdoutPipe()
	said, err3 := l.cmd.StderrPipe()
	for _, err := range []error{err1, err2, err3, l.cmd.Start()} {
		if err != nil {
			return fmt.Errorf("cannot start: %w", err)
		}
	}
	l.stdin, l.out, l.err, l.pid = stdin, collect(out), collect(said), l.cmd.Process.Pid
	return nil
}

// short does a few things, sometimes rests, and stops.
func (l *life) short() error {
	for range 2 + l.rnd.IntN(5) {
		if err := l.act(); err != nil {
			return err
		}
	}
	if l.rnd.IntN(3) == 0 {
		if err := asleep(l.pid); err != nil {
			return err
		}
	}
	return l.stop()
}

// long does things for as long as there is time, then rests, and stops.
func (l *life) long() error {
	for time.Now().Before(l.until) && l.ctx.Err() == nil {
		if err := l.act(); err != nil {
			return err
		}
	}
	if err := asleep(l.pid); err != nil {
		return err
	}
	return l.stop()
}

// signal sends it one.
func (l *life) signal(s unix.Signal) {
	l.total.add("signals", 1)
	unix.Kill(l.pid, s)
}

// leaves waits for the end, which is the command's.
func (l *life) leaves() error {
	timer := time.AfterFunc(patience, func() { l.cmd.Process.Kill() })
	<-l.out.ended
	<-l.err.ended
	l.cmd.Wait()
	if code := l.cmd.ProcessState.ExitCode(); !timer.Stop() || code != 7 {
		return fmt.Errorf("left with %d, want 7", code)
	}
	return nil
}
