// Package soak runs lameduck for a long time, at random: the storms of the other tests of e2e with
// a longer clock. One life of lameduck lasts as long as the soak; beside it short lives follow each
// other, each as PID 1 before a server under load, through storms of signals and orphans, stops and
// health checks. make soak runs it.
//
// In no life may descriptors, threads, zombies or memory grow, and a lameduck with no work to do
// must sleep. The soak ends at the first fault; the seed chooses the same course again.
package soak

import (
	"expvar"
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
	t.Logf("soak: %v, -seed=%d", *length, *seed)
	end := time.Now().Add(*length)
	var total expvar.Map // of what was done
	t.Run("lives", func(all *testing.T) {
		for i, until := range []time.Time{end, time.Now()} {
			all.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				rnd := rand.New(rand.NewPCG(*seed, uint64(i)))
				for n := 0; time.Now().Before(end) && !all.Failed(); n++ {
					t.Run(fmt.Sprint(n), func(t *testing.T) {
						l := &life{port: 20000 + 1000*i + 10*(n%100), rnd: rnd, total: &total}
						l.live(t, func() bool { return time.Now().Before(until) && !all.Failed() })
					})
				}
			})
		}
	})
	t.Log("soak:", &total)
}

// life is one lameduck, from start to end.
type life struct {
	*box.Box
	port  int // of the server; health checks come to the next
	rnd   *rand.Rand
	total *expvar.Map

	flags  []string
	adapts bool // a stop waits for silence, for seconds
	health string
	alive  string

	base   gauge
	end    func() // of the load
	failed atomic.Int64
}

// must ends a life unless a condition holds.
func (l *life) must(holds bool, format string, args ...any) {
	if !holds {
		l.T.Helper()
		l.T.Fatalf("-seed=%d: %s\n%s\n%v", *seed, fmt.Sprintf(format, args...), l.flags, l.Err.Texts())
	}
}

// live starts and ends a lameduck, which acts as long as it goes on, and a few times at least.
func (l *life) live(t *testing.T, goesOn func() bool) {
	l.choose(t.TempDir())
	l.Box = box.Boot(t, strings.Join(l.flags, " "), box.Helper("web", fmt.Sprintf("127.0.0.1:%d", l.port))...)
	l.Out.Next("ready")
	l.base = l.read()
	l.begin()
	defer l.end()
	rests := l.rnd.IntN(3) == 0
	for n := 2 + l.rnd.IntN(5); n > 0 || goesOn(); n-- {
		rests = rests || n <= 0
		l.act()
	}
	if rests {
		l.must(l.soon(func() bool { return box.Sleeps(l.Pid()) }), "wakeups: with nothing to do")
	}
	l.stop()
	_, left := os.Stat(l.alive)
	l.must(left != nil, "%s is still there", l.alive)
	l.total.Add("lives", 1)
}

// choose picks flags at random. --group is left out, since a group's TERM would end the
// programs that the command runs.
func (l *life) choose(dir string) {
	pick := func(words ...string) string { return words[l.rnd.IntN(len(words))] }
	until := pick("", "settled", "quiet", "drained")
	l.adapts = until != ""
	if l.adapts {
		l.flags = []string{"--until=" + until, "--delay=0.2 --quiet-for=2 --max-delay=60 --grace-period=100"}
	} else {
		l.flags = []string{"--delay=0.3"}
	}
	l.alive = dir + "/alive"
	for _, flag := range []string{"--on-stop=true", "--wait-gone=" + dir + "/nobody", "--log-format=json",
		"--log-level=debug", "--linger=1", "--termination-log=" + dir + "/log", "--alive-file=" + l.alive} {
		l.flags = append(l.flags, pick("", flag))
	}
	health := fmt.Sprintf("--health=127.0.0.1:%d", l.port+1)
	forwarded := fmt.Sprintf("%s=127.0.0.1:%d", health, l.port)
	l.health = pick("", health, forwarded+" --health-during="+pick("fail", "pass", "close"))
	l.flags = append(l.flags, l.health)
}

// begin begins the load: three clients with requests all the time, the first on a connection that
// stays open.
func (l *life) begin() {
	var ends []func()
	for i := range 3 {
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: i > 0}}
		end := box.Repeat(10*time.Millisecond, func() {
			l.total.Add("requests", 1)
			answer, err := c.Post(fmt.Sprintf("http://127.0.0.1:%d", l.port), "", nil)
			if err == nil {
				answer.Body.Close()
			} else {
				l.failed.Add(1)
			}
		})
		ends = append(ends, end, c.CloseIdleConnections)
	}
	l.end = sync.OnceFunc(func() {
		for _, end := range ends {
			end()
		}
	})
}

// gauge counts the resources of a process.
type gauge struct {
	descriptors, zombies, kib int
	threads                   string
}

// read gauges lameduck.
func (l *life) read() (g gauge) {
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", l.Pid()))
	l.must(err == nil, "lameduck has exited: %v", err)
	g = gauge{descriptors: len(fds), kib: box.RSS(l.Pid()), threads: box.Status(l.Pid(), "Threads")}
	for _, child := range box.Children(l.Pid()) {
		if strings.HasPrefix(box.Status(child, "State"), "Z") {
			g.zombies++
		}
	}
	return g
}

// soon waits until a condition holds, and reports whether it held in time.
func (l *life) soon(holds func() bool) bool {
	for end := time.Now().Add(8 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// check compares lameduck with its base line. Threads and memory may never grow; zombies
// and descriptors may, for a while.
func (l *life) check() {
	var now gauge
	l.soon(func() bool {
		now = l.read()
		l.must(now.threads == l.base.threads, "threads: %s, were %s", now.threads, l.base.threads)
		l.must(now.kib <= l.base.kib+box.Heap, "memory: %d KiB, was %d", now.kib, l.base.kib)
		return now.zombies == 0 && now.descriptors <= l.base.descriptors
	})
	l.must(now.zombies == 0, "zombies: %d", now.zombies)
	l.must(now.descriptors <= l.base.descriptors, "descriptors: %d, were %d", now.descriptors, l.base.descriptors)
}

// act does one thing at random and checks that no resource has leaked.
func (l *life) act() {
	acts := []func(){l.storm, l.orphans, l.pause, l.watch, l.hook}
	if l.health != "" {
		acts = append(acts, l.checks)
	}
	acts[l.rnd.IntN(len(acts))]()
	n := l.failed.Load()
	l.must(n == 0, "%d requests failed before any stop", n)
	l.check()
}

// runs has the command run a line of shell, which must succeed.
func (l *life) runs(what, line string) {
	l.total.Add(what, 1)
	l.Send("run " + line)
	status := l.Out.Next("exit status").Text
	l.must(status == "exit status 0", "%s: %s: %s", what, line, status)
}

// storm sends signals without a pause, of which at least one of each kind must reach the command:
// the kernel merges a signal with a pending one of the same kind.
func (l *life) storm() {
	kinds := []sig.Signal{sig.HUP, sig.USR1, sig.USR2, sig.WINCH}
	for range 50 + l.rnd.IntN(2000) {
		l.Signal(kinds[l.rnd.IntN(len(kinds))])
		l.total.Add("signals", 1)
	}
	for _, s := range kinds {
		l.Signal(s)
		l.Out.Next("got " + s.String())
	}
}

// orphans has the command leave hundreds or thousands of orphans behind.
func (l *life) orphans() {
	const families = "for i in $(seq %d); do (for j in $(seq 100); do : & done); done"
	l.runs("hundreds of orphans", fmt.Sprintf(families, 1+l.rnd.IntN(10)))
}

// pause stops the command with SIGSTOP, sends USR2, and continues the command.
func (l *life) pause() {
	l.total.Add("pauses", 1)
	command := l.Child()
	unix.Kill(command, unix.SIGSTOP)
	l.Signal(sig.USR2)
	unix.Kill(command, unix.SIGCONT)
	l.Out.Next("got USR2")
}

// watch runs lameduck watch beside the command, and ends it after the first line.
func (l *life) watch() {
	l.runs("watches", `(sh -c 'echo $$; exec `+box.Binary+` watch --json'; echo ended $?) | `+
		`(read pid; read line; kill -INT $pid; grep -qx "ended 0")`)
}

// hook runs lameduck hold as a preStop hook would.
func (l *life) hook() {
	l.runs("hooks", box.Binary+" hold --until=settled --delay=0.1 --quiet-for=0.1 --max-delay=0.5")
}

// checks sends health checks, and now and then hangs up before the answer.
func (l *life) checks() {
	address := fmt.Sprintf("127.0.0.1:%d", l.port+1)
	for range 1 + l.rnd.IntN(20) {
		l.total.Add("health checks", 1)
		if l.rnd.IntN(4) > 0 {
			answer := l.Get(address)
			l.must(strings.HasPrefix(answer, "200 "), "a health check was answered with %q", answer)
		} else {
			l.must(box.Accepts(address), "no health check is accepted")
		}
	}
}

// stop ends a life in a way chosen at random.
func (l *life) stop() {
	way := l.rnd.IntN(5)
	if !l.adapts {
		way = max(way, 3)
	}
	switch way {
	case 0, 1: // a second TERM or INT cuts the hold short
		l.holds("holds cut short")
		time.Sleep(1100 * time.Millisecond) // within a second a repeat counts as the same signal
		l.Signal([]sig.Signal{sig.TERM, sig.INT}[way])
		l.Out.Next("got TERM")
	case 2: // the command exits during the hold
		l.holds("exits during a hold")
	case 3:
		l.total.Add("stops", 1)
		l.end()
		l.Stop()
		l.Out.Next("got TERM")
	case 4: // the command goes on after TERM
		l.survives()
	}
	l.Exit()
}

// holds begins a hold, which lasts since the load goes on, and acts meanwhile. A hold has
// a few descriptors of its own.
func (l *life) holds(what string) {
	l.total.Add(what, 1)
	l.Trigger()
	l.base.descriptors += 10
	l.orphans()
	l.storm()
	l.check()
}

// survives acts after a stop that the command survives. lameduck samples until the
// end, for the report, with the two sockets of the hold; no other descriptor remains.
func (l *life) survives() {
	l.total.Add("stops survived", 1)
	l.end()
	l.Stop()
	l.Out.Next("got TERM")
	l.base.descriptors += 2
	l.storm()
	l.orphans()
	l.check()
}
