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

// serverBox is a server under lameduck, that has started.
type serverBox struct {
	*box
	port string
}

// quickFlags are flags that make all of it quick.
var quickFlags = []string{"--delay=0", "--quiet-for=2", "--grace-period=30"}

func bootServer(t *testing.T, stage, until string, flags ...string) *serverBox {
	t.Helper()
	t.Parallel()
	flags = append(append([]string{"--until=" + until}, quickFlags...), flags...)
	s := &serverBox{box: bootStage(t, stage, nil, append(append(flags, "--"), helperCommand("serve")...)...)}
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

func (s *serverBox) dial(host string) *client {
	s.t.Helper()
	conn, err := net.Dial("tcp", net.JoinHostPort(host, s.port))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return &client{conn, s.t, bufio.NewScanner(conn)}
}

// ask sends a line and waits for the answer.
func (c *client) ask(line string) {
	c.t.Helper()
	if fmt.Fprintln(c, line); !c.in.Scan() {
		c.t.Errorf("%q is not answered: %v", line, c.in.Err())
	}
}

// shortConn is a connection with one request, as probes and many clients make them.
func (s *serverBox) shortConn(host string) {
	c := s.dial(host)
	c.ask("hello")
	c.Close()
}

// wantHoldSince wants the hold to end so long after some moment, and for that reason.
func (s *serverBox) wantHoldSince(since time.Time, at time.Duration, reason string) {
	s.t.Helper()
	got := s.out.wait(s.t, "got TERM").at.Sub(since)
	if got < at || got > at+2*time.Second {
		s.t.Errorf("the hold ended after %v, want %v", got, at)
	}
	s.sendLine("exit 7")
	s.wantExit(7)
	stderr := s.err.all()
	if last := stderr[len(stderr)-1].text; !strings.Contains(last, "("+reason+")") {
		s.t.Errorf("the report says %q, want %s", last, reason)
	}
}

const quietFor = 2 * time.Second

// TestUntilQuiet: short connections hold, one by one, over both families; idle
// ones that are kept alive do not.
func TestUntilQuiet(t *testing.T) {
	for name, stage := range map[string]string{
		"": "stage", "nobody": "stage:uid=65534", "denied": "stage:seccomp",
	} {
		for _, host := range []string{"127.0.0.1", "::1"} {
			t.Run(name+" "+host, func(t *testing.T) {
				if stage == "stage:uid=65534" && !isRoot() {
					t.Skip("only root can change its uid")
				}
				s := bootServer(t, stage, "quiet")
				s.dial(host).ask("hello")
				s.signal(sig.TERM)
				s.err.wait(t, "until quiet")
				var last time.Time
				for range 10 {
					s.shortConn(host)
					last = time.Now()
					time.Sleep(200 * time.Millisecond) // the traffic that there is
				}
				s.wantHoldSince(last, quietFor-100*time.Millisecond, "quiet")
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
			p := newNamespace(t)
			a := p.bootUntil("stage:no-netlink", "quiet", quickFlags, helperCommand("app", "[::]:0")...)
			a.dial(host).ask("hello")
			a.trigger()
			var last time.Time
			for range 10 {
				a.shortConn(host)
				last = time.Now()
				time.Sleep(200 * time.Millisecond) // the traffic that there is
			}
			a.wantHoldSince(last, quietFor-100*time.Millisecond, "quiet")
		})
	}
}

// TestUntilQuietChecked: without netlink, lameduck's own health checks are no traffic of
// an idle connection.
func TestUntilQuietChecked(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	flags := append([]string{"--health=127.0.0.1:9000=127.0.0.1:8080", "--health-during=pass"}, quickFlags...)
	a := p.bootUntil("stage:no-netlink", "quiet", flags, helperCommand("app", "127.0.0.1:8080")...)
	a.dial("127.0.0.1").ask("hello")
	end := repeatEvery(100*time.Millisecond, func() {
		check := p.dial("127.0.0.1:9000")
		check.ask("hello")
		check.Close()
	})
	start := a.trigger()
	a.out.wait(t, "got TERM")
	end()
	a.wantHoldSince(start, quietFor-100*time.Millisecond, "quiet")
}

// TestUntilSlow: a request that takes its time is never cut by quiet, on a
// connection that was used before.
func TestUntilSlow(t *testing.T) {
	s := bootServer(t, "stage", "quiet")
	c := s.dial("127.0.0.1")
	c.ask("hello")
	fmt.Fprintln(c, "slow")
	s.signal(sig.TERM)
	if !c.in.Scan() {
		t.Errorf("the request was cut: %v", c.in.Err())
	}
	s.wantHoldSince(time.Now(), quietFor-time.Second, "quiet")
}

// TestUntilSettled: connections that talk do not hold, new ones do.
func TestUntilSettled(t *testing.T) {
	s := bootServer(t, "stage", "settled")
	start := time.Now()
	c := s.dial("127.0.0.1")
	over := make(chan struct{})
	go func() {
		defer close(over)
		for c.in.Text() != "no" && time.Since(start) < 2*quietFor {
			fmt.Fprintln(c, "hello")
			c.in.Scan()
		}
	}()
	s.signal(sig.TERM)
	s.wantHoldSince(start, quietFor, "settled")
	<-over
}

// TestUntilDrained: an idle connection holds until it is closed.
func TestUntilDrained(t *testing.T) {
	s := bootServer(t, "stage", "drained")
	c := s.dial("127.0.0.1")
	c.ask("hello")
	s.signal(sig.TERM)
	s.err.wait(t, "until drained")
	time.Sleep(quietFor + time.Second) // quiet it is
	if stderr := s.out.all(); stderr[len(stderr)-1].text != "ready" {
		t.Errorf("it did not wait: %v", stderr)
	}
	c.Close()
	s.wantHoldSince(time.Now(), 0, "drained")
}

// TestUntilCeiling: traffic without end holds to the ceiling, and the report names
// what looks like a probe; ignored, it does not hold.
func TestUntilCeiling(t *testing.T) {
	for name, c := range map[string]struct {
		flags  []string
		hold   time.Duration
		reason string
	}{
		"counted": {[]string{"--max-delay=6"}, 6 * time.Second, "ceiling"},
		"ignored": {[]string{"--max-delay=10", "--ignore-probes"}, quietFor, "quiet"},
		"peer":    {[]string{"--max-delay=10", "--ignore-peer=127.0.0.0/8"}, quietFor, "quiet"},
	} {
		t.Run(name, func(t *testing.T) {
			s := bootServer(t, "stage", "quiet", c.flags...)
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
			s.wantHoldSince(start, c.hold, c.reason)
			close(over)
			text := fmt.Sprint(s.err.all())
			if hint := probeHint.MatchString(text); hint != (name == "counted") {
				t.Errorf("stderr: %s", text)
			}
		})
	}
}

var probeHint = regexp.MustCompile(`(; |, and )6 bytes from 127\.0\.0\.1 every 0\.[56] s: a probe\? see --ignore-probes;`)

// TestUntilNobody: who listens nowhere is told at once, however busy the
// neighbours are.
func TestUntilNobody(t *testing.T) {
	busy := bootServer(t, "stage", "quiet")
	b := boot(t, nil, append([]string{"--until=quiet", "--grace-period=30", "--"}, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	busy.shortConn("127.0.0.1")
	start := time.Now()
	b.signal(sig.TERM)
	(&serverBox{box: b}).wantHoldSince(start, 0, "no_listener")
	busy.sendLine("exit 0")
	busy.wantExit(0)
}

// TestUntilPortless: of UDP and of Unix sockets nothing can be said; the floor is
// kept, and there is no waiting for a ceiling.
func TestUntilPortless(t *testing.T) {
	for network, reason := range map[string]string{"udp": "udp", "unix": "quiet"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			b := boot(t, nil, append([]string{"--until=quiet", "--delay=1", "--grace-period=30", "--"}, helperCommand("listen", network, filepath.Join(t.TempDir(), "socket"))...)...)
			b.out.wait(t, "ready")
			start := time.Now()
			b.signal(sig.TERM)
			(&serverBox{box: b}).wantHoldSince(start, time.Second, reason)
		})
	}
}

// TestUntilCostsNothing: before the trigger there is no descriptor more than
// without, and no thread. How many threads Go's runtime has is up to chance: the
// fewest of some runs are compared.
func TestUntilCostsNothing(t *testing.T) {
	look := func(flags ...string) (threads, fds int) {
		b := boot(t, nil, append(append(flags, "--"), helperCommand("catch")...)...)
		b.out.wait(t, "ready")
		pid := b.cmd.Process.Pid
		testutil.Eventually(t, "it sleeps", func() bool { return strings.HasPrefix(status(pid, "State"), "S") })
		list, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		threads, _ = strconv.Atoi(status(pid, "Threads"))
		b.sendLine("exit 0")
		b.wantExit(0)
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
