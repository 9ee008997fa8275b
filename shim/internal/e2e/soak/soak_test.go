// Package soak runs lameduck for a long time, at random: the storms of the other tests of e2e with
// a longer clock. One life of lameduck lasts as long as the soak; beside it short lives follow each
// other, each as PID 1 before a server under load, through storms of signals and orphans, stops and
// health checks. make soak runs it.
//
// In no life may descriptors, threads, zombies or memory grow, and a lameduck with no work to do
// must sleep. The soak ends at the first fault; the seed chooses the same course again.
package soak

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

var (
	length = flag.Duration("for", 0, "the length of the soak")
	seed   = flag.Uint64("seed", rand.Uint64(), "what chooses the course")
)

func TestMain(m *testing.M) {
	flag.StringVar(&box.Binary, "lameduck", box.Binary, "the built lameduck")
	box.Main(m, nil)
}

// TestSoak runs lives until a life fails or the time is over, a long one and short ones.
func TestSoak(t *testing.T) {
	if *length == 0 {
		t.Skip("give -for, or make soak")
	}
	end := time.Now().Add(*length)
	for i, until := range []time.Time{end, time.Now()} {
		t.Run(fmt.Sprint(i), func(life *testing.T) {
			life.Parallel()
			rnd := rand.New(rand.NewPCG(*seed, uint64(i)))
			for n := 0; time.Now().Before(end) && !t.Failed(); n++ {
				life.Run(fmt.Sprint(n), func(one *testing.T) {
					l := &soaked{port: 20000 + 1000*i + 10*(n%100), rnd: rnd, end: func() {}}
					l.live(one, func() bool { return time.Now().Before(until) && !t.Failed() })
				})
			}
		})
	}
}

// soaked is one lameduck, from start to end.
type soaked struct {
	*box.Box
	port   int // of the server; health checks come to the next
	rnd    *rand.Rand
	flags  string
	base   box.Gauge
	end    func() // of the load
	failed atomic.Int64
}

// must ends a life unless a condition holds.
func (l *soaked) must(holds bool, format string, args ...any) {
	if !holds {
		l.T.Helper()
		l.T.Fatalf(format, args...)
	}
}

func (l *soaked) pick(words ...string) string { return words[l.rnd.IntN(len(words))] }

func (l *soaked) has(flag string) bool { return strings.Contains(l.flags, flag) }

// live starts and ends a lameduck, which acts as long as it goes on, and a few times at least. --group
// is left out, since a group's TERM would end the programs that the command runs.
func (l *soaked) live(t *testing.T, goesOn func() bool) {
	dir := t.TempDir()
	l.flags = "--delay=0.3"
	if until := l.pick("", "settled", "quiet", "drained"); until != "" {
		l.flags = "--delay=0.2 --quiet-for=2 --max-delay=60 --grace-period=100 --until=" + until
	}
	health := fmt.Sprintf("--health=127.0.0.1:%d", l.port+1)
	passed := fmt.Sprintf("%s=127.0.0.1:%d --health-during=", health, l.port) + l.pick("fail", "pass", "close")
	for _, flag := range []string{"--on-stop=true", "--wait-gone=" + dir + "/nobody", "--log-format=json",
		"--log-level=debug", "--linger=1", "--termination-log=" + dir + "/log", "--alive-file=" + dir + "/alive", l.pick(health, passed)} {
		l.flags += " " + l.pick("", flag)
	}
	l.Box = box.Setup{}.Boot(t, l.flags, box.Helper("catch", fmt.Sprintf("http:127.0.0.1:%d", l.port))...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("-seed=%d: %s\n%v\n%+v", *seed, l.flags, l.Err.Texts(), l.Gauge())
		}
	})
	l.Out.Next("ready")
	l.base = l.Gauge()
	for i := range 3 { // the load; the first connection stays open
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: i > 0}}
		end, others := box.Repeat(10*time.Millisecond, func() { l.request(c) }), l.end
		l.end = sync.OnceFunc(func() { end(); c.CloseIdleConnections(); others() })
	}
	defer func() { l.end() }()
	rests := l.rnd.IntN(3) == 0
	for n := 2 + l.rnd.IntN(5); n > 0 || goesOn(); n-- {
		rests = rests || n <= 0
		l.act()
	}
	if rests {
		l.must(soon(func() bool { return box.Sleeps(l.Pid()) }), "wakeups: with nothing to do")
	}
	l.stop()
	_, left := os.Stat(dir + "/alive")
	l.must(left != nil, "the alive file is still there")
}

func (l *soaked) request(c *http.Client) {
	answer, err := c.Post(fmt.Sprintf("http://127.0.0.1:%d", l.port), "", nil)
	if err != nil {
		l.failed.Add(1)
		return
	}
	answer.Body.Close()
}

// soon waits until a condition holds, and reports whether it held in time.
func soon(holds func() bool) bool {
	for end := time.Now().Add(8 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// check wants lameduck to use no more than its base line, soon: zombies and descriptors may be more for a while.
func (l *soaked) check() {
	l.must(soon(func() bool { return !l.Gauge().Grown(l.base) }), "more than %+v", l.base)
}

// act does one thing at random and checks that no resource has leaked.
func (l *soaked) act() {
	acts := []func(){
		l.storm, l.orphans, l.pause,
		// lameduck watch beside the command ends after its first line.
		func() {
			l.runs(`(sh -c 'echo $$; exec ` + box.Binary + ` watch --json'; echo ended $?) | ` +
				`(read pid; read line; kill -INT $pid; grep -qx "ended 0")`)
		},
		func() { l.runs(box.Binary + " hold --until=settled --delay=0.1 --quiet-for=0.1 --max-delay=0.5") },
	}
	if l.has("--health=") {
		acts = append(acts, l.checks)
	}
	acts[l.rnd.IntN(len(acts))]()
	n := l.failed.Load()
	l.must(n == 0, "%d requests failed before any stop", n)
	l.check()
}

// runs has the command run a line of shell, which must succeed.
func (l *soaked) runs(line string) {
	l.Send("run " + line)
	status := l.Out.Next("exit status").Text
	l.must(status == "exit status 0", "%s: %s", line, status)
}

// storm sends signals without a pause, of which at least one of each kind must reach the command:
// the kernel merges a signal with a pending one of the same kind.
func (l *soaked) storm() {
	kinds := []sig.Signal{sig.HUP, sig.USR1, sig.USR2, sig.WINCH}
	for range 50 + l.rnd.IntN(2000) {
		l.Signal(kinds[l.rnd.IntN(len(kinds))])
	}
	for _, s := range kinds {
		l.Signal(s)
		l.Out.Next("got " + s.String())
	}
}

// orphans has the command leave hundreds or thousands of orphans behind.
func (l *soaked) orphans() {
	l.runs(fmt.Sprintf("for i in $(seq %d); do (for j in $(seq 100); do : & done); done", 1+l.rnd.IntN(10)))
}

// pause stops the command with SIGSTOP, sends USR2, and continues the command.
func (l *soaked) pause() {
	command := l.Child()
	unix.Kill(command, unix.SIGSTOP)
	l.Signal(sig.USR2)
	unix.Kill(command, unix.SIGCONT)
	l.Out.Next("got USR2")
}

// checks sends health checks, and now and then hangs up before the answer.
func (l *soaked) checks() {
	address := fmt.Sprintf("127.0.0.1:%d", l.port+1)
	for range 1 + l.rnd.IntN(20) {
		if l.rnd.IntN(4) > 0 {
			answer := l.Get(address)
			l.must(strings.HasPrefix(answer, "200 "), "a health check was answered with %q", answer)
		} else {
			l.must(box.Accepts(nil, address), "no health check is accepted")
		}
	}
}

// stop ends a life: by the end of the load, or with --until perhaps before, by a second TERM, by INT or
// by the command's exit. The command may go on after TERM: lameduck then samples to the end, for the
// report, with the two sockets of the hold, which has a few more descriptors while it lasts.
func (l *soaked) stop() {
	way := l.pick("TERM", "INT", "exit", "load", "goes on")
	amid := l.has("--until=") && way != "load" && way != "goes on"
	if amid {
		l.Play("TERM / err holding")
		l.base.Descriptors += 10
	} else {
		l.end()
		l.Stop()
		l.Out.Next("got TERM")
		l.base.Descriptors += 2
	}
	if amid || way == "goes on" {
		l.orphans()
		l.storm()
		l.check()
	}
	if amid && way != "exit" {
		time.Sleep(1100 * time.Millisecond) // within a second a repeat counts as the same signal
		l.Signal(map[string]sig.Signal{"TERM": sig.TERM, "INT": sig.INT}[way])
		l.Out.Next("got TERM")
	}
	l.Exit()
}
