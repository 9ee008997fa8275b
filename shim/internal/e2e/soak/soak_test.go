// Package soak runs lameduck for a long time, at random: the storms of the other tests of e2e with
// a longer clock. One life of lameduck lasts as long as the soak; beside it short lives follow each
// other, each as PID 1 before a server under load, through storms of signals and orphans, stops and
// health checks. make soak runs it.
//
// In no life may descriptors, threads, zombies or memory grow, and a lameduck with no work to do
// must sleep. The soak ends at the first fault; the seed chooses the same course again.
package soak

import (
	"context"
	"expvar"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
)

var (
	length = flag.Duration("for", 0, "the length of the soak")
	seed   = flag.Uint64("seed", rand.Uint64(), "what chooses the course")
)

func TestMain(m *testing.M) {
	flag.StringVar(&box.Binary, "lameduck", box.Binary, "the built lameduck")
	box.Main(m, map[string]func([]string){"command": command})
}

// TestSoak soaks lameduck.
func TestSoak(t *testing.T) {
	if *length == 0 {
		t.Skip("give -for, or make soak")
	}
	t.Logf("soak: %v, -seed=%d", *length, *seed)
	var total expvar.Map // of what was done
	if err := soak(t, "", *length, &total); err != nil || total.Get("lives") == nil {
		t.Errorf("-seed=%d: %v", *seed, err)
	}
	t.Log("soak:", &total)
}

// TestFindsFaults: an init with a fault does not get through the soak.
func TestFindsFaults(t *testing.T) {
	if *length == 0 {
		t.Skip("give -for")
	}
	box.Needs(t, "python3")
	for _, fault := range []string{"descriptors", "threads", "zombies", "memory", "wakeups"} {
		t.Run(fault, func(t *testing.T) {
			var total expvar.Map
			if err := soak(t, fault, 5*time.Second, &total); err == nil || !strings.HasPrefix(err.Error(), fault) {
				t.Errorf("error %v, want one about %s", err, fault)
			}
		})
	}
}

// soak runs lives until a life fails or the time is over, a long one and short ones. fault is that
// of testdata/bad.py, which takes lameduck's place, or "".
func soak(t *testing.T, fault string, length time.Duration, total *expvar.Map) error {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	end := time.Now().Add(length)
	var lives sync.WaitGroup
	for i, until := range []time.Time{end, time.Now()} {
		lives.Go(func() {
			rnd := rand.New(rand.NewPCG(*seed, uint64(i)))
			for n := 0; ctx.Err() == nil && time.Now().Before(end); n++ {
				l := &life{fault: fault, port: 20000 + 1000*i + 10*(n%100), until: until, rnd: rnd, total: total}
				if err := l.live(t, t.TempDir()); err != nil {
					cancel(err)
				}
			}
		})
	}
	lives.Wait()
	return context.Cause(ctx)
}

// life is one lameduck, from start to end.
type life struct {
	*box.Box
	fault string
	port  int       // of the server; health checks come to the next
	until time.Time // acts until then, and a few times at least
	rnd   *rand.Rand
	total *expvar.Map

	flags    []string
	adaptive bool // a stop waits for silence, for seconds
	health   bool // there is a listener for health checks
	alive    string

	asked  int // orders to the command
	base   gauge
	end    func() // of the load
	load   sync.WaitGroup
	failed atomic.Int64
}

// broken is what ends a life.
type broken struct{ error }

// must ends a life unless a condition holds.
func must(holds bool, format string, args ...any) {
	if !holds {
		panic(broken{fmt.Errorf(format, args...)})
	}
}

// soon waits until a condition holds, and reports whether it held within a limit.
func soon(limit time.Duration, holds func() bool) bool {
	for end := time.Now().Add(limit); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// live starts and ends lameduck. An error has the command line and lameduck's lines.
func (l *life) live(t *testing.T, dir string) (err error) {
	init, flags := box.Setup{}, ""
	if l.fault == "" {
		l.choose(dir)
		flags = strings.Join(l.flags, " ")
	} else {
		init.Init, _ = filepath.Abs("testdata/bad.py")
		flags = l.fault
	}
	l.Box = init.Boot(t, flags, box.Helper("command", fmt.Sprint(l.port))...)
	defer func() {
		switch reason := recover().(type) {
		case nil:
			l.total.Add("lives", 1)
		case broken:
			err = fmt.Errorf("%w\n%s\n%v", reason, flags, l.Err.Texts())
		default:
			panic(reason)
		}
		l.Cmd.Process.Kill()
	}()
	l.Out.Wait("ready")
	l.asked++
	l.base = l.read()
	l.begin()
	defer l.end()
	rests := l.rnd.IntN(3) == 0
	for n := 2 + l.rnd.IntN(5); n > 0 || time.Now().Before(l.until); n-- {
		rests = rests || n <= 0
		l.act()
	}
	if rests {
		l.sleeps()
	}
	l.stop()
	_, left := os.Stat(l.alive)
	must(left != nil, "%s is still there", l.alive)
	return nil
}

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

// begin begins the load: three clients with requests all the time, the first on a connection that
// stays open.
func (l *life) begin() {
	over := make(chan bool)
	l.end = sync.OnceFunc(func() {
		close(over)
		l.load.Wait()
	})
	for i := range 3 {
		l.load.Go(func() {
			c := &http.Client{Transport: &http.Transport{DisableKeepAlives: i > 0}}
			defer c.CloseIdleConnections()
			for {
				l.total.Add("requests", 1)
				answer, err := c.Post(fmt.Sprintf("http://127.0.0.1:%d", l.port), "", nil)
				if err == nil {
					answer.Body.Close()
				} else {
					l.failed.Add(1)
				}
				select {
				case <-over:
					return
				case <-time.After(10 * time.Millisecond): // the pace of the load
				}
			}
		})
	}
}

// ask gives the command an order and returns the answer.
func (l *life) ask(order string) string {
	l.Send(order)
	l.asked++
	return l.Out.WaitNth(l.asked, "").Text
}

// gauge counts the resources of a process.
type gauge struct{ descriptors, threads, zombies, kib int }

// release bounds the time until the resources of finished work are freed.
const release = 8 * time.Second

// read gauges lameduck.
func (l *life) read() (g gauge) {
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", l.Pid()))
	must(err == nil, "lameduck has exited: %v", err)
	g = gauge{descriptors: len(fds), kib: box.RSS(l.Pid())}
	g.threads, _ = strconv.Atoi(box.Status(l.Pid(), "Threads"))
	for _, child := range box.Children(l.Pid()) {
		if strings.HasPrefix(box.Status(child, "State"), "Z") {
			g.zombies++
		}
	}
	return g
}

// check compares lameduck with its base line. Threads and memory may never grow; zombies
// and descriptors may, for a while.
func (l *life) check() {
	var now gauge
	soon(release, func() bool {
		now = l.read()
		must(now.threads == l.base.threads, "threads: %d, were %d", now.threads, l.base.threads)
		must(now.kib <= l.base.kib+box.Heap, "memory: %d KiB, was %d", now.kib, l.base.kib)
		return now.zombies == 0 && now.descriptors <= l.base.descriptors
	})
	must(now.zombies == 0, "zombies: %d", now.zombies)
	must(now.descriptors <= l.base.descriptors, "descriptors: %d, were %d", now.descriptors, l.base.descriptors)
}

// sleeps fails unless lameduck soon sleeps for two seconds in a row.
func (l *life) sleeps() {
	switches := func() (sum int) {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", l.Pid()))
		for _, task := range tasks {
			text, _ := os.ReadFile(task)
			for _, field := range []string{"voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"} {
				n, _ := strconv.Atoi(box.Field(string(text), field))
				sum += n
			}
		}
		return sum
	}
	must(soon(release, func() bool {
		before := switches()
		time.Sleep(2 * time.Second) // what is measured
		return switches() == before
	}), "wakeups: with nothing to do")
}
