package soak

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

// life is one lameduck, from start to end.
type life struct {
	init  string
	port  int       // of the server
	until time.Time // the end of the soak
	rnd   *rand.Rand
	total *tally

	features
	process
	load *load
	base gauge // at the start
}

// features are the flags of a life, and the flags that its course depends on.
type features struct {
	flags    []string
	adaptive bool   // a stop waits for silence, for seconds
	health   int    // the port for health checks, or 0
	passes   bool   // health checks are passed on to the server
	alive    string // the alive file, or ""
}

// process is a started lameduck.
type process struct {
	cmd      *exec.Cmd
	pid      int
	stdin    io.Writer // of the command
	out, err *lines
}

// live starts lameduck and follows course. An error has the command line and the last
// lines of stderr.
func (l *life) live(ctx context.Context, course func(*life) error) error {
	dir, err := os.MkdirTemp("", "lameduck-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.choose(dir)
	if err := l.start(ctx); err != nil {
		return err
	}
	err = l.follow(course)
	if l.load != nil {
		l.load.end()
	}
	cancel() // kills lameduck where lameduck still runs
	l.cmd.Wait()
	if err != nil {
		return fmt.Errorf("%w\n%s %s\n%s", err, l.init, strings.Join(l.flags, " "), l.err.tail())
	}
	l.total.add("lives", 1)
	return nil
}

// follow goes through a life after the start.
func (l *life) follow(course func(*life) error) (err error) {
	_, err = l.out.wait("ready")
	if err != nil {
		return err
	}
	l.base, err = read(l.pid)
	if err != nil {
		return err
	}
	l.load = newLoad(l.port, l.total)
	err = course(l)
	if err == nil && l.alive != "" {
		if _, err := os.Stat(l.alive); err == nil {
			return fmt.Errorf("%s is still there", l.alive)
		}
	}
	return err
}

// choose picks flags at random. --group is left out, since a group's TERM would end the
// programs that the command runs.
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
	l.adaptive = l.rnd.IntN(3) > 0
	if l.adaptive {
		until := []string{"settled", "quiet", "drained"}[l.rnd.IntN(3)]
		l.flags = []string{"--until=" + until, "--delay=0.2", "--quiet-for=2", "--max-delay=60", "--grace-period=100"}
		maybe("--on-stop=true")
		maybe("--wait-gone=" + filepath.Join(dir, "nobody"))
	} else {
		maybe("--delay=0.3")
	}
	maybe("--log-format=json")
	maybe("--log-level=debug")
	maybe("--linger=1")
	maybe("--termination-log=" + filepath.Join(dir, "log"))
	alive := filepath.Join(dir, "alive")
	if maybe("--alive-file=" + alive) {
		l.alive = alive
	}
	health := fmt.Sprintf("--health=127.0.0.1:%d", l.port+1)
	l.passes = l.rnd.IntN(2) == 0
	if l.passes {
		health += fmt.Sprintf("=127.0.0.1:%d", l.port)
	}
	if maybe(health) {
		l.health = l.port + 1
		maybe("--health-during=" + []string{"fail", "pass", "close"}[l.rnd.IntN(3)])
	}
}

// start starts lameduck, as PID 1 of new namespaces.
func (l *life) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	init := append([]string{l.init}, append(l.flags, "--")...)
	if fault, ok := strings.CutPrefix(l.init, "bad:"); ok {
		init = []string{self, "soak", "bad", fault}
	}
	words := append(append([]string{self, "soak", "stage"}, init...), self, "soak", "server", fmt.Sprint(l.port))
	l.cmd = exec.CommandContext(ctx, words[0], words[1:]...)
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
	l.stdin, l.pid = stdin, l.cmd.Process.Pid
	l.out, l.err = collect(out), collect(said)
	return nil
}

// short acts a few times, sometimes rests, and stops.
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

// long acts until the end of the soak, then rests, and stops.
func (l *life) long() error {
	for time.Now().Before(l.until) {
		if err := l.act(); err != nil {
			return err
		}
	}
	if err := asleep(l.pid); err != nil {
		return err
	}
	return l.stop()
}

// signal sends s to lameduck.
func (l *life) signal(s unix.Signal) {
	l.total.add("signals", 1)
	unix.Kill(l.pid, s)
}

// leaves waits for the end of lameduck, with the exit code of the command.
func (l *life) leaves() error {
	timer := time.AfterFunc(patience, func() { l.cmd.Process.Kill() })
	<-l.out.ended
	<-l.err.ended
	l.cmd.Wait()
	if code := l.cmd.ProcessState.ExitCode(); !timer.Stop() || code != 7 {
		return fmt.Errorf("exit code %d, want 7", code)
	}
	return nil
}
