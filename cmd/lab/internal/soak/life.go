package soak

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"expvar"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
)

// life is one lameduck, from start to end. Its methods end it by package must.
type life struct {
	init  string    // or bad:FAULT
	port  int       // of the server
	until time.Time // acts until then, and a few times at least
	rnd   *rand.Rand
	total *expvar.Map

	flags    []string
	adaptive bool // a stop waits for silence, for seconds
	health   bool // there is a listener for health checks, on the port after the server's
	alive    string

	cmd     *exec.Cmd
	pid     int
	orders  io.Writer // to the command
	stdout  *os.File  // of the command
	answers *bufio.Reader
	stderr  bytes.Buffer // of lameduck
	load    *load
	base    gauge // at the start
}

// live starts and ends lameduck. An error has the command line and the end of stderr.
func (l *life) live(ctx context.Context, dir string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dir, err := os.MkdirTemp(dir, "life-")
	if err != nil {
		return err
	}
	err = must.Try(func() {
		l.start(ctx, dir)
		l.answer() // ready
		l.base = read(l.pid)
		l.load = newLoad(l.port, l.total)
		defer l.load.end()
		l.course()
		_, err := os.Stat(l.alive)
		must.Be(err != nil, "%s is still there", l.alive)
	})
	cancel() // kills lameduck where lameduck still runs
	l.cmd.Wait()
	if err != nil {
		said := l.stderr.Bytes()
		said = said[max(0, len(said)-2000):]
		return fmt.Errorf("%w\n%s %s\n%s", err, l.init, strings.Join(l.flags, " "), said)
	}
	l.total.Add("lives", 1)
	return nil
}

// course acts, sometimes rests, and stops.
func (l *life) course() {
	rests := l.rnd.IntN(3) == 0
	for n := 2 + l.rnd.IntN(5); n > 0 || time.Now().Before(l.until); n-- {
		rests = rests || n <= 0
		l.act()
	}
	if rests {
		l.sleeps()
	}
	l.stop()
}

//go:embed bad.py
var badInit string

func (l *life) isBad() bool { return strings.HasPrefix(l.init, "bad:") }

// choose picks flags at random. --group is left out, since a group's TERM would end the
// programs that the command runs.
func (l *life) choose(dir string) {
	maybe := func(flags ...string) (taken bool) {
		for _, flag := range flags {
			taken = l.rnd.IntN(2) == 0
			if taken {
				l.flags = append(l.flags, flag)
			}
		}
		return taken
	}
	l.adaptive = l.rnd.IntN(3) > 0
	if l.adaptive {
		until := []string{"settled", "quiet", "drained"}[l.rnd.IntN(3)]
		l.flags = []string{"--until=" + until, "--delay=0.2", "--quiet-for=2", "--max-delay=60", "--grace-period=100"}
		maybe("--on-stop=true", "--wait-gone="+filepath.Join(dir, "nobody"))
	} else {
		maybe("--delay=0.3")
	}
	l.alive = filepath.Join(dir, "alive")
	maybe("--log-format=json", "--log-level=debug", "--linger=1", "--termination-log="+filepath.Join(dir, "log"),
		"--alive-file="+l.alive)
	health := fmt.Sprintf("--health=127.0.0.1:%d", l.port+1)
	if l.rnd.IntN(2) == 0 { // passed on to the server
		health += fmt.Sprintf("=127.0.0.1:%d", l.port)
	}
	l.health = maybe(health)
	if l.health {
		maybe("--health-during=" + []string{"fail", "pass", "close"}[l.rnd.IntN(3)])
	}
}

// start starts lameduck, as PID 1 of new namespaces with a /proc of their own.
func (l *life) start(ctx context.Context, dir string) {
	self, _ := os.Executable() // else nothing starts
	var words []string
	if fault, isBad := strings.CutPrefix(l.init, "bad:"); isBad {
		words = append(words, "python3", "-c", badInit, fault)
	} else {
		l.choose(dir)
		words = append(append(append(words, l.init), l.flags...), "--")
	}
	l.cmd = stage.Init(ctx, false, append(words, self, "soak", "server", fmt.Sprint(l.port))...)
	l.cmd.Stderr = &l.stderr
	l.orders = must.Get(l.cmd.StdinPipe())
	l.stdout = must.Get(l.cmd.StdoutPipe()).(*os.File)
	l.answers = bufio.NewReader(l.stdout)
	must.Do(l.cmd.Start())
	l.pid = l.cmd.Process.Pid
}

// signal sends s to lameduck.
func (l *life) signal(s unix.Signal) {
	l.total.Add("signals", 1)
	unix.Kill(l.pid, s)
}

// ask gives the command an order and returns the answer.
func (l *life) ask(order string) string {
	fmt.Fprintln(l.orders, order)
	return l.answer()
}

// answer returns the next line of the command.
func (l *life) answer() string {
	l.stdout.SetReadDeadline(time.Now().Add(patience))
	return strings.TrimSpace(must.Get(l.answers.ReadString('\n')))
}
