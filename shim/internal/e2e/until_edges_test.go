package e2e

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// TestUntilFamilies: clients over IPv4, over IPv6, and over IPv4 at an IPv6 socket.
func TestUntilFamilies(t *testing.T) {
	t.Parallel()
	for user, stage := range map[string]string{"sock_diag": "stage", "nobody": "stage:uid=65534", "proc": "stage:no-netlink"} {
		for name, c := range map[string]struct{ listen, host string }{
			"IPv4":             {"127.0.0.1:0", "127.0.0.1"},
			"IPv6":             {"[::1]:0", "::1"},
			"IPv6 of both":     {"[::]:0", "::1"},
			"IPv4, as if IPv6": {"[::]:0", "127.0.0.1"},
		} {
			t.Run(user+"/"+name, func(t *testing.T) {
				t.Parallel()
				ns := newNamespace(t)
				a := ns.bootUntil(stage, "drained", quiet1sFlags, helperCommand("app", c.listen)...)
				kept := a.dial(c.host)
				kept.ask("hello")
				a.trigger()
				repeatFor(2*quiet1s, 150*time.Millisecond, func() { a.shortConn(c.host) })
				kept.ask("hello")
				kept.Close()
				a.wantHoldSince(time.Now(), quiet1s-300*time.Millisecond, "drained")
			})
		}
	}
}

// TestUntilPeers: traffic from an address of --ignore-peer does not prolong the hold,
// even as an IPv4-mapped IPv6 address; traffic from other addresses does.
func TestUntilPeers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from   net.IP
		hold   time.Duration
		reason string
	}{
		"named":    {net.IPv4(127, 0, 0, 2), quiet1s, "quiet"},
		"not that": {net.IPv4(127, 0, 0, 3), 4 * time.Second, "ceiling"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			a := ns.bootUntil("stage", "quiet", append(quiet1sFlags, "--max-delay=4", "--ignore-peer=127.0.0.2/32"), helperCommand("app", "[::]:0")...)
			end := repeatEvery(90*time.Millisecond, func() {
				if conn, err := ns.connectFrom(c.from, a.addr("127.0.0.1")); err == nil {
					fmt.Fprintln(conn, "hello")
					bufio.NewScanner(conn).Scan()
					conn.Close()
				}
			})
			defer end()
			start := a.trigger()
			a.wantHoldSince(start, c.hold, c.reason)
		})
	}
}

// TestUntilPorts: a port of --ignore-port does not prolong the hold, nor does a port
// missing from --count-port.
func TestUntilPorts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flag   string
		hold   time.Duration
		reason string
	}{
		"ignored":     {"--ignore-port=9090", quiet1s, "quiet"},
		"not counted": {"--count-port=8080", quiet1s, "quiet"},
		"counted":     {"--count-port=8080,9090", 4 * time.Second, "ceiling"},
		"by default":  {"--log-level=warn", 4 * time.Second, "ceiling"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			a := ns.bootUntil("stage", "quiet", append(quiet1sFlags, "--max-delay=4", c.flag), helperCommand("app", "127.0.0.1:8080", "127.0.0.1:9090")...)
			scraper := ns.dial("127.0.0.1:9090")
			end := scraper.keepTalking(50 * time.Millisecond)
			defer end()
			start := a.trigger()
			a.out.wait(t, "got TERM")
			end()
			a.wantHoldSince(start, c.hold, c.reason)
		})
	}
}

// TestUntilFloorEnds: a connection just before the end of the floor counts.
func TestUntilFloorEnds(t *testing.T) {
	t.Parallel()
	var tried atomic.Int32
	t.Run("before", func(t *testing.T) {
		for _, before := range []time.Duration{0, 5, 20, 40, 70, 100} {
			before *= time.Millisecond
			t.Run(before.String(), func(t *testing.T) {
				t.Parallel()
				const floor, silence = 2 * time.Second, 1500 * time.Millisecond
				ns := newNamespace(t)
				a := ns.bootUntil("stage", "quiet", []string{"--delay=2", "--quiet-for=1.5", "--grace-period=30"}, helperCommand("app", "127.0.0.1:0")...)
				start := a.trigger()
				time.Sleep(time.Until(start.Add(floor - before)))
				a.shortConn("127.0.0.1")
				served := time.Now()
				got := a.out.wait(t, "got TERM").at
				switch after := got.Sub(served); {
				case after < 100*time.Millisecond: // the request came after lameduck's last sample
				case after < silence-200*time.Millisecond:
					t.Errorf("the hold ended %v after a request, want %v or at once", after, silence)
				default:
					tried.Add(1)
				}
				a.wantHoldSince(start, floor, "quiet")
			})
		}
	})
	if tried.Load() == 0 {
		t.Error("no request came before the last sample")
	}
}

// TestUntilNoTCP: without TCP listeners the hold lasts for the floor. A TCP listener
// beside UDP or Unix sockets decides, and for UDP a ceiling given on the command line.
func TestUntilNoTCP(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]noTCPCase{
		"UDP":                {"stage", "quiet", nil, []string{"udp 127.0.0.1:5353"}, time.Second, "udp"},
		"UDP, nobody":        {"stage:uid=65534", "quiet", nil, []string{"udp [::]:5353"}, time.Second, "udp"},
		"UDP, no netlink":    {"stage:no-netlink", "drained", nil, []string{"udp 127.0.0.1:5353"}, time.Second, "udp"},
		"UDP with a ceiling": {"stage", "quiet", []string{"--max-delay=3"}, []string{"udp 127.0.0.1:5353"}, 3 * time.Second, "udp"},
		"UDP beside TCP":     {"stage", "quiet", []string{"--max-delay=6"}, []string{"127.0.0.1:0", "udp 127.0.0.1:5353"}, time.Second, "quiet"},
		"Unix":               {"stage", "quiet", nil, []string{"unix "}, time.Second, "elapsed"},
		"Unix, abstract":     {"stage", "quiet", nil, []string{"unix @app"}, time.Second, "elapsed"},
		"Unix, nobody":       {"stage:uid=65534", "drained", nil, []string{"unix "}, time.Second, "elapsed"},
		"Unix, no netlink":   {"stage:no-netlink", "settled", nil, []string{"unix "}, time.Second, "elapsed"},
		"Unix, busy":         {"stage", "quiet", []string{"--delay=5"}, []string{"unix "}, 5 * time.Second, "elapsed"},
		"Unix beside TCP":    {"stage", "quiet", nil, []string{"127.0.0.1:0", "unix "}, time.Second, "quiet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

type noTCPCase struct {
	stage   string
	until   string
	flags   []string
	listens []string
	hold    time.Duration
	reason  string
}

func (c noTCPCase) run(t *testing.T) {
	dir, err := os.MkdirTemp("", "until") // other users may not enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(dir, 0o777)
	t.Cleanup(func() { os.RemoveAll(dir) })
	for i := range c.listens {
		if c.listens[i] == "unix " {
			c.listens[i] += filepath.Join(dir, "socket")
		}
	}
	flags := append([]string{"--quiet-for=1", "--grace-period=30", "--delay=1"}, c.flags...)
	ns := newNamespace(t)
	other := ns.neighbor() // a neighbor's traffic does not count
	ns.neighbor().do("call " + other.addr("127.0.0.1"))
	a := ns.bootUntil(c.stage, c.until, flags, helperCommand("app", c.listens...)...)
	if c.hold == 5*time.Second {
		end := repeatEvery(50*time.Millisecond, func() { // clients that lameduck cannot observe
			if conn, err := net.Dial("unix", filepath.Join(dir, "socket")); err == nil {
				fmt.Fprintln(conn, "hello")
				conn.Close()
			}
		})
		defer end()
	}
	start := a.trigger()
	a.wantHoldSince(start, c.hold, c.reason)
}

// TestUntilStarved: requests during a time in which lameduck could not run do not count
// as silence.
func TestUntilStarved(t *testing.T) {
	t.Parallel()
	for name, stage := range map[string]string{"sock_diag": "stage", "proc": "stage:no-netlink"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			a := ns.bootUntil(stage, "quiet", []string{"--delay=1", "--quiet-for=1", "--grace-period=30", "--log-level=debug"}, helperCommand("app", "127.0.0.1:0")...)
			a.shortConn("127.0.0.1")
			a.trigger()
			a.err.wait(t, "holding: sample")
			a.signal(sig.STOP)
			time.Sleep(2 * quiet1s) // a silence of twice --quiet-for, had lameduck been running
			a.shortConn("127.0.0.1")
			time.Sleep(quiet1s / 4) // lameduck is stopped, and the kernel queues the event of the close a little later
			a.signal(sig.CONT)
			a.wantHoldSince(time.Now(), quiet1s-100*time.Millisecond, "quiet")
		})
	}
}

// TestUntilFrozen: after a freeze beyond the ceiling, lameduck takes one more sample
// before the signal, so that the report counts connections opened during the freeze.
func TestUntilFrozen(t *testing.T) {
	t.Parallel()
	for name, stage := range map[string]string{"sock_diag": "stage", "proc": "stage:no-netlink"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const ceiling = 3 * time.Second
			ns := newNamespace(t)
			a := ns.bootUntil(stage, "drained", []string{"--delay=1", "--quiet-for=1", "--max-delay=3", "--grace-period=30", "--log-level=debug"}, helperCommand("app", "127.0.0.1:0")...)
			a.dial("127.0.0.1").ask("hello")
			start := a.trigger()
			a.err.wait(t, "holding: sample")
			a.signal(sig.STOP)
			a.dial("127.0.0.1").ask("hello")
			time.Sleep(time.Until(start.Add(ceiling + 3*time.Second/2))) // the freeze itself
			a.signal(sig.CONT)
			a.wantHoldSince(start, ceiling+time.Second, "ceiling")
			a.wantOpen(2)
		})
	}
}
