package e2e

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// The hold that waits for traffic, end to end: a server under the built lameduck,
// and its clients in other processes, of the same network namespace.

// served is a server under lameduck, that has started.
type served struct {
	*box
	port string
}

// impatient are flags that make all of it quick.
var impatient = []string{"--delay=0", "--quiet-for=2", "--grace-period=30"}

func serving(t *testing.T, stage, until string, flags ...string) *served {
	t.Helper()
	t.Parallel()
	flags = append(append([]string{"--until=" + until}, impatient...), flags...)
	s := &served{box: bootFrom(t, stage, nil, append(append(flags, "--"), self("serve")...)...)}
	s.out.wait(t, "ready")
	s.port = strings.Fields(s.out.all()[0].text)[1]
	return s
}

// client is a connection to a server.
type client struct {
	net.Conn
	t  *testing.T
	in *bufio.Scanner
}

func (s *served) dial(host string) *client {
	s.t.Helper()
	conn, err := net.Dial("tcp", net.JoinHostPort(host, s.port))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return &client{conn, s.t, bufio.NewScanner(conn)}
}

// asks sends a line and waits for the answer.
func (c *client) asks(line string) {
	c.t.Helper()
	if fmt.Fprintln(c, line); !c.in.Scan() {
		c.t.Errorf("%q is not answered: %v", line, c.in.Err())
	}
}

// short is a connection with one request, as probes and many clients make them.
func (s *served) short(host string) {
	c := s.dial(host)
	c.asks("hello")
	c.Close()
}

// holds wants the hold to end so long after some moment, and for that reason.
func (s *served) holds(since time.Time, at time.Duration, why string) {
	s.t.Helper()
	got := s.out.wait(s.t, "got TERM").at.Sub(since)
	if got < at || got > at+2*time.Second {
		s.t.Errorf("the hold ended after %v, want %v", got, at)
	}
	s.tell("exit 7")
	s.wants(7)
	said := s.err.all()
	if last := said[len(said)-1].text; !strings.Contains(last, "("+why+")") {
		s.t.Errorf("the report says %q, want %s", last, why)
	}
}

const silence = 2 * time.Second

// TestUntilQuiet: short connections hold, one by one, over both families; idle
// ones that are kept alive do not.
func TestUntilQuiet(t *testing.T) {
	for name, stage := range map[string]string{
		"": "stage", "nobody": "stage:uid=65534", "denied": "stage:seccomp",
	} {
		for _, host := range []string{"127.0.0.1", "::1"} {
			t.Run(name+" "+host, func(t *testing.T) {
				if stage == "stage:uid=65534" && !isRoot() {
					t.Skip("only root can become somebody else")
				}
				s := serving(t, stage, "quiet")
				s.dial(host).asks("hello")
				s.signal(sig.TERM)
				s.err.wait(t, "until quiet")
				var last time.Time
				for range 10 {
					s.short(host)
					last = time.Now()
					time.Sleep(200 * time.Millisecond) // the traffic that there is
				}
				s.holds(last, silence-100*time.Millisecond, "quiet")
			})
		}
	}
}

// TestUntilQuietUnseen: the same without netlink, in a network namespace without the
// segments of other tests, which would count.
func TestUntilQuietUnseen(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1", "::1"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			a := p.holding("stage:no-netlink", "quiet", impatient, self("app", "[::]:0")...)
			a.dial(host).asks("hello")
			a.stops()
			var last time.Time
			for range 10 {
				a.short(host)
				last = time.Now()
				time.Sleep(200 * time.Millisecond) // the traffic that there is
			}
			a.holds(last, silence-100*time.Millisecond, "quiet")
		})
	}
}

// TestUntilQuietChecked: without netlink, lameduck's own health checks are no traffic of
// an idle connection.
func TestUntilQuietChecked(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	flags := append([]string{"--health=127.0.0.1:9000=127.0.0.1:8080", "--health-during=pass"}, impatient...)
	a := p.holding("stage:no-netlink", "quiet", flags, self("app", "127.0.0.1:8080")...)
	a.dial("127.0.0.1").asks("hello")
	end := steadily(100*time.Millisecond, func() {
		check := p.dial("127.0.0.1:9000")
		check.asks("hello")
		check.Close()
	})
	start := a.stops()
	a.out.wait(t, "got TERM")
	end()
	a.holds(start, silence-100*time.Millisecond, "quiet")
}

// TestUntilSlow: a request that takes its time is never cut by quiet, on a
// connection that was used before.
func TestUntilSlow(t *testing.T) {
	s := serving(t, "stage", "quiet")
	c := s.dial("127.0.0.1")
	c.asks("hello")
	fmt.Fprintln(c, "slow")
	s.signal(sig.TERM)
	if !c.in.Scan() {
		t.Errorf("it was cut: %v", c.in.Err())
	}
	s.holds(time.Now(), silence-time.Second, "quiet")
}

// TestUntilSettled: connections that talk do not hold, new ones do.
func TestUntilSettled(t *testing.T) {
	s := serving(t, "stage", "settled")
	start := time.Now()
	c := s.dial("127.0.0.1")
	over := make(chan struct{})
	go func() {
		defer close(over)
		for c.in.Text() != "no" && time.Since(start) < 2*silence {
			fmt.Fprintln(c, "hello")
			c.in.Scan()
		}
	}()
	s.signal(sig.TERM)
	s.holds(start, silence, "settled")
	<-over
}

// TestUntilDrained: an idle connection holds until it is closed.
func TestUntilDrained(t *testing.T) {
	s := serving(t, "stage", "drained")
	c := s.dial("127.0.0.1")
	c.asks("hello")
	s.signal(sig.TERM)
	s.err.wait(t, "until drained")
	time.Sleep(silence + time.Second) // quiet it is
	if said := s.out.all(); said[len(said)-1].text != "ready" {
		t.Errorf("it did not wait: %v", said)
	}
	c.Close()
	s.holds(time.Now(), 0, "drained")
}

// TestUntilCeiling: traffic without end holds to the ceiling, and the report names
// what looks like a probe; ignored, it does not hold.
func TestUntilCeiling(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		at    time.Duration
		why   string
	}{
		"counted": {[]string{"--max-delay=6"}, 6 * time.Second, "ceiling"},
		"ignored": {[]string{"--max-delay=10", "--ignore-probes"}, silence, "quiet"},
		"peer":    {[]string{"--max-delay=10", "--ignore-peer=127.0.0.0/8"}, silence, "quiet"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serving(t, "stage", "quiet", c.flags...)
			start := time.Now()
			s.signal(sig.TERM)
			over := make(chan struct{})
			go func() {
				tick := time.NewTicker(550 * time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-over:
						return
					case <-tick.C:
						if conn, err := net.Dial("tcp", "127.0.0.1:"+s.port); err == nil {
							fmt.Fprintln(conn, "probe")
							bufio.NewScanner(conn).Scan()
							conn.Close()
						}
					}
				}
			}()
			s.holds(start, c.at, c.why)
			close(over)
			text := fmt.Sprint(s.err.all())
			if hint := probeHint.MatchString(text); hint != (name == "counted") {
				t.Errorf("it says %s", text)
			}
		})
	}
}

var probeHint = regexp.MustCompile(`(; |, and )6 bytes from 127\.0\.0\.1 every 0\.[56] s: a probe\? see --ignore-probes;`)

// TestUntilNobody: who listens nowhere is told at once, however busy the
// neighbours are.
func TestUntilNobody(t *testing.T) {
	busy := serving(t, "stage", "quiet")
	b := boot(t, nil, append([]string{"--until=quiet", "--grace-period=30", "--"}, self("catch")...)...)
	b.out.wait(t, "ready")
	busy.short("127.0.0.1")
	start := time.Now()
	b.signal(sig.TERM)
	(&served{box: b}).holds(start, 0, "no_listener")
	busy.tell("exit 0")
	busy.wants(0)
}

// TestUntilPortless: of UDP and of Unix sockets nothing can be said; the floor is
// kept, and there is no waiting for a ceiling.
func TestUntilPortless(t *testing.T) {
	for network, why := range map[string]string{"udp": "udp", "unix": "quiet"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			b := boot(t, nil, append([]string{"--until=quiet", "--delay=1", "--grace-period=30", "--"}, self("listen", network, filepath.Join(t.TempDir(), "socket"))...)...)
			b.out.wait(t, "ready")
			start := time.Now()
			b.signal(sig.TERM)
			(&served{box: b}).holds(start, time.Second, why)
		})
	}
}

// TestUntilCostsNothing: before the trigger there is no descriptor more than
// without, and no thread. How many threads Go's runtime has is up to chance: the
// fewest of some runs are compared.
func TestUntilCostsNothing(t *testing.T) {
	look := func(flags ...string) (threads, fds int) {
		b := boot(t, nil, append(append(flags, "--"), self("catch")...)...)
		b.out.wait(t, "ready")
		pid := b.cmd.Process.Pid
		testutil.Eventually(t, "it sleeps", func() bool { return strings.HasPrefix(status(pid, "State"), "S") })
		list, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		threads, _ = strconv.Atoi(status(pid, "Threads"))
		b.tell("exit 0")
		b.wants(0)
		return threads, len(list)
	}
	type counts struct{ threads, fds int }
	fewest := map[string]counts{}
	for round := range 40 {
		for _, flag := range []string{"--until=quiet", "--delay=5"} {
			threads, fds := look(flag, "--grace-period=30")
			if old, ok := fewest[flag]; ok {
				threads, fds = min(threads, old.threads), min(fds, old.fds)
			}
			fewest[flag] = counts{threads, fds}
		}
		until, delay := fewest["--until=quiet"], fewest["--delay=5"]
		if round >= 7 && until.threads <= delay.threads && until.fds == delay.fds && until.fds >= 3 {
			return
		}
	}
	t.Errorf("fewest threads and descriptors: %v", fewest)
}
