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

// Tests of a hold that waits for traffic: a server under lameduck, and clients in the
// test's process, in the same network namespace.

// serverBox is a started server under lameduck.
type serverBox struct {
	*box
	port string
}

// quiet2sFlags shorten a hold: no floor, and a silence of quiet2s.
var quiet2sFlags = []string{"--delay=0", "--quiet-for=2", "--grace-period=30"}

func bootServer(t *testing.T, stage, until string, flags ...string) *serverBox {
	t.Helper()
	t.Parallel()
	flags = append(append([]string{"--until=" + until}, quiet2sFlags...), flags...)
	s := &serverBox{box: bootStage(t, stage, nil, append(append(flags, "--"), helperCommand("serve")...)...)}
	s.out.wait(t, "ready")
	s.port = strings.Fields(s.out.all()[0].text)[1]
	return s
}

// client is a connection to a server that replies to lines.
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

// ask sends a line and waits for the reply.
func (c *client) ask(line string) {
	c.t.Helper()
	fmt.Fprintln(c, line)
	c.awaitReply()
}

func (c *client) awaitReply() {
	c.t.Helper()
	if !c.in.Scan() {
		c.t.Errorf("the server closed the connection without a reply: %v", c.in.Err())
	}
}

// shortConn makes one request on a new connection, as probes and many clients do.
func (s *serverBox) shortConn(host string) {
	c := s.dial(host)
	c.ask("hello")
	c.Close()
}

const quiet2s = 2 * time.Second

// TestUntilQuiet: short connections, one after the other, prolong the hold, over IPv4 and
// IPv6; an idle keep-alive connection does not.
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
				repeatFor(2*time.Second, 200*time.Millisecond, func() {
					s.shortConn(host)
					last = time.Now()
				})
				s.wantHoldSince(last, quiet2s-100*time.Millisecond, "quiet")
			})
		}
	}
}

// TestUntilQuietUnseen: like TestUntilQuiet, without netlink. The test has its own
// network namespace, since the TCP segments of other tests would count.
func TestUntilQuietUnseen(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1", "::1"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			p := newNamespace(t)
			a := p.bootUntil("stage:no-netlink", "quiet", quiet2sFlags, helperCommand("app", "[::]:0")...)
			a.dial(host).ask("hello")
			a.trigger()
			var last time.Time
			repeatFor(2*time.Second, 200*time.Millisecond, func() {
				a.shortConn(host)
				last = time.Now()
			})
			a.wantHoldSince(last, quiet2s-100*time.Millisecond, "quiet")
		})
	}
}

// TestUntilQuietChecked: without netlink, lameduck's own health checks do not count as
// traffic on an idle connection.
func TestUntilQuietChecked(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	flags := append([]string{"--health=127.0.0.1:9000=127.0.0.1:8080", "--health-during=pass"}, quiet2sFlags...)
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
	a.wantHoldSince(start, quiet2s-100*time.Millisecond, "quiet")
}

// TestUntilSlow: --until=quiet never cuts a slow request on a connection that was used
// before.
func TestUntilSlow(t *testing.T) {
	s := bootServer(t, "stage", "quiet")
	c := s.dial("127.0.0.1")
	c.ask("hello")
	fmt.Fprintln(c, "slow")
	s.signal(sig.TERM)
	c.awaitReply()
	s.wantHoldSince(time.Now(), quiet2s-time.Second, "quiet")
}

// TestUntilSettled: with --until=settled, only new connections prolong the hold, not
// traffic on old ones.
func TestUntilSettled(t *testing.T) {
	s := bootServer(t, "stage", "settled")
	start := time.Now()
	c := s.dial("127.0.0.1")
	over := make(chan struct{})
	go func() {
		defer close(over)
		for c.in.Text() != "no" && time.Since(start) < 2*quiet2s {
			fmt.Fprintln(c, "hello")
			c.in.Scan()
		}
	}()
	s.signal(sig.TERM)
	s.wantHoldSince(start, quiet2s, "settled")
	<-over
}

// TestUntilDrained: with --until=drained, an idle connection prolongs the hold until the
// connection is closed.
func TestUntilDrained(t *testing.T) {
	s := bootServer(t, "stage", "drained")
	c := s.dial("127.0.0.1")
	c.ask("hello")
	s.signal(sig.TERM)
	s.err.wait(t, "until drained")
	time.Sleep(quiet2s + time.Second) // an idle connection, for longer than --quiet-for
	if stdout := s.out.all(); stdout[len(stdout)-1].text != "ready" {
		t.Errorf("the hold has ended with a connection open: %v", stdout)
	}
	c.Close()
	s.wantHoldSince(time.Now(), 0, "drained")
}

// TestUntilCeiling: under traffic without end, the hold lasts to the ceiling, and the
// report points out a likely probe. Ignored traffic does not prolong the hold.
func TestUntilCeiling(t *testing.T) {
	for name, c := range map[string]struct {
		flags  []string
		hold   time.Duration
		reason string
	}{
		"counted": {[]string{"--max-delay=6", "--no-ignore-probes"}, 6 * time.Second, "ceiling"},
		"ignored": {[]string{"--max-delay=10", "--ignore-probes"}, quiet2s, "quiet"},
		"peer":    {[]string{"--max-delay=10", "--ignore-peer=127.0.0.0/8"}, quiet2s, "quiet"},
	} {
		t.Run(name, func(t *testing.T) {
			s := bootServer(t, "stage", "quiet", append(c.flags, "--log-format=json")...)
			start := time.Now()
			s.signal(sig.TERM)
			end := repeatEvery(550*time.Millisecond, func() {
				if conn, err := net.Dial("tcp", "127.0.0.1:"+s.port); err == nil {
					fmt.Fprintln(conn, "probe")
					bufio.NewScanner(conn).Scan()
					conn.Close()
				}
			})
			s.wantHoldSince(start, c.hold, c.reason)
			end()
			text := fmt.Sprint(s.err.all())
			if hint := probeHint.MatchString(text); hint != (name == "counted") {
				t.Errorf("stderr: %s\nhint at probes: %v, want %v", text, hint, !hint)
			}
		})
	}
}

var probeHint = regexp.MustCompile(`"prolonged_by":"what looks like a health probe, 6 bytes from 127\.0\.0\.1 on port \d+ every 0\.[56] s, until `)

// TestUntilNoListener: a command without listeners gets TERM at once, however busy the
// neighbors are.
func TestUntilNoListener(t *testing.T) {
	busy := bootServer(t, "stage", "quiet")
	b := boot(t, nil, append([]string{"--until=quiet", "--grace-period=30", "--"}, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	busy.shortConn("127.0.0.1")
	start := time.Now()
	b.signal(sig.TERM)
	b.wantHoldSince(start, 0, "no_listener")
	busy.sendLine("exit 0")
	busy.wantExit(0)
}

// TestUntilPortless: for a command with only UDP or Unix sockets, the hold lasts for the
// floor and not to the ceiling.
func TestUntilPortless(t *testing.T) {
	for network, reason := range map[string]string{"udp": "udp", "unix": "elapsed"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			b := boot(t, nil, append([]string{"--until=quiet", "--delay=1", "--grace-period=30", "--"}, helperCommand("listen", network, filepath.Join(t.TempDir(), "socket"))...)...)
			b.out.wait(t, "ready")
			start := time.Now()
			b.signal(sig.TERM)
			b.wantHoldSince(start, time.Second, reason)
		})
	}
}

// TestUntilCostsNothing: before a stop, --until costs neither a descriptor nor a thread.
// The number of threads of Go's runtime varies from run to run, so the test compares the
// minimum over several runs.
func TestUntilCostsNothing(t *testing.T) {
	count := func(flags ...string) (threads, fds int) {
		b := boot(t, nil, append(append(flags, "--"), helperCommand("catch")...)...)
		b.out.wait(t, "ready")
		pid := b.cmd.Process.Pid
		testutil.Eventually(t, "lameduck sleeps", func() bool { return strings.HasPrefix(status(pid, "State"), "S") })
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
			threads, fds := count(flag, "--grace-period=30")
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
