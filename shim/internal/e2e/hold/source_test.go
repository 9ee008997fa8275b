package hold_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestUntilSources: short connections hold, and an idle one does not, whichever source and
// address family there is. Without netlink or parts of /proc, lameduck is less certain, and
// warns once. A source that cannot be read never counts as silence.
func TestUntilSources(t *testing.T) {
	for name, c := range map[string]struct {
		faults          string
		listen, host    string
		observer, scope string // in the report; "none": the hold lasts to the ceiling
		warning         string
	}{
		"all":                      {"", "[::]:0", "127.0.0.1", "sock_diag", "descriptors", ""},
		"all, IPv4":                {"", "127.0.0.1:0", "127.0.0.1", "sock_diag", "descriptors", ""},
		"all, IPv6":                {"", "[::]:0", "::1", "sock_diag", "descriptors", ""},
		"all, nobody":              {"uid=65534", "[::]:0", "127.0.0.1", "sock_diag", "descriptors", ""},
		"all, denied calls":        {"seccomp", "[::]:0", "127.0.0.1", "sock_diag", "descriptors", ""},
		"no netlink group":         {"no-groups", "[::]:0", "127.0.0.1", "sock_diag", "descriptors", ""},
		"no netlink":               {"no-netlink", "[::]:0", "127.0.0.1", "/proc/net", "descriptors", "through /proc/net: sock_diag: "},
		"no netlink, IPv6":         {"no-netlink", "[::]:0", "::1", "/proc/net", "descriptors", "through /proc/net: sock_diag: "},
		"no netlink, nobody":       {"no-netlink,uid=65534", "[::]:0", "127.0.0.1", "/proc/net", "descriptors", "through /proc/net: sock_diag: "},
		"no /proc/net":             {"no-proc-net", "[::]:0", "127.0.0.1", "sock_diag", "descriptors", ""},
		"no /proc":                 {"no-proc", "[::]:0", "127.0.0.1", "sock_diag", "namespace", ""},
		"no /proc, nobody":         {"no-proc,uid=65534", "[::]:0", "127.0.0.1", "sock_diag", "namespace", ""},
		"no /proc, no group":       {"no-proc,no-groups", "[::]:0", "127.0.0.1", "sock_diag", "namespace", "shorter than a sample"},
		"no /proc/net, no netlink": {"no-proc-net,no-netlink", "[::]:0", "127.0.0.1", "none", "", "sock_diag: "},
		"no /proc, no netlink":     {"no-proc,no-netlink", "[::]:0", "127.0.0.1", "none", "", "sock_diag: "},
		"another user's program":   {"no-ptrace", "127.0.0.1:0", "127.0.0.1", "sock_diag", "namespace", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := box.Helper("catch", c.listen)
			if strings.HasPrefix(name, "another user") {
				box.NeedsRoot(t)
				command = box.Helper("as", append([]string{"1000"}, command[2:]...)...)
			}
			s := box.Setup{Faults: c.faults, Network: box.NewNetwork(t), Env: []string{"GODEBUG=asyncpreemptoff=1"}} // no second execution
			b := s.Boot(t, flags+"--until=quiet --max-delay=4", command...)
			b.Ready()
			b.Dial(c.host).Ask("hello") // an idle connection
			start := b.Trigger()
			last := shorts(b, c.host)
			var r box.Report
			switch {
			case c.observer == "none":
				if r = b.WantHold(start, 4*time.Second, "blind"); r.Accepted != -1 || r.Open != -1 || r.InFlight != -1 {
					t.Errorf("report %+v, want no figures", r)
				}
			case strings.HasSuffix(name, "no group"): // connections shorter than a sample cannot be seen at all
				r = b.WantHold(start, 4*time.Second, "ceiling")
			default:
				r = b.WantHold(last, quiet-early, "quiet")
			}
			if r.Observer != c.observer || r.Scope != c.scope {
				t.Errorf("report %+v, want observer %s and scope %s", r, c.observer, c.scope)
			}
			b.WantWarning(c.warning)
		})
	}
}

// TestUntilStarved: requests during a time in which lameduck could not run do not count as
// silence.
func TestUntilStarved(t *testing.T) {
	for name, faults := range map[string]string{"sock_diag": "", "proc": "no-netlink"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := box.Setup{Faults: faults, Network: box.NewNetwork(t)}.Catch(t, flags+"--until=quiet --log-level=debug", "127.0.0.1:0")
			b.ShortConn("127.0.0.1")
			b.Trigger()
			b.Err.Wait("holding: sample")
			b.Signal(sig.STOP)
			time.Sleep(2 * quiet) // a silence of twice --quiet-for, had lameduck been running
			b.ShortConn("127.0.0.1")
			time.Sleep(quiet / 4) // lameduck is stopped, and the kernel queues the event of the close a little later
			last := time.Now()
			b.Signal(sig.CONT)
			b.WantHold(last, quiet-early, "quiet")
		})
	}
}

// TestUntilUnseen: a hold lasts for the floor, 5 s without one, where the traffic cannot be
// observed. It ends at once, or at the floor, only if the container certainly has no server.
// A TCP listener beside other sockets decides, and for UDP a ceiling given.
func TestUntilUnseen(t *testing.T) {
	for name, c := range map[string]struct {
		faults, flags string
		listens       []string
		hold          time.Duration
		reason        string
		warning       string
	}{
		"Unix socket":            {"", "--delay=1", []string{"unix:PATH"}, time.Second, "elapsed", "(Unix sockets) cannot be observed"},
		"Unix socket, nobody":    {"uid=65534", "", []string{"unix:@app"}, 5 * time.Second, "elapsed", "(Unix sockets) cannot be observed"},
		"Unix socket beside TCP": {"", "", []string{"127.0.0.1:0", "unix:@app"}, quiet, "quiet", ""},
		"vsock":                  {"", "--delay=1", []string{"vsock:"}, time.Second, "elapsed", "(vsock sockets) cannot be observed"},
		"raw":                    {"", "--delay=1", []string{"raw:"}, time.Second, "elapsed", "(raw sockets) cannot be observed"},
		"another namespace":      {"", "--delay=1", []string{"elsewhere:"}, time.Second, "elapsed", "(another network namespace) cannot be observed"},
		"UDP":                    {"", "--delay=1", []string{"udp:127.0.0.1:5353"}, time.Second, "udp", "UDP ("},
		"UDP, nobody":            {"uid=65534", "--delay=1", []string{"udp:[::]:5353"}, time.Second, "udp", "UDP ("},
		"UDP, ephemeral port":    {"", "", []string{"udp:127.0.0.1:0"}, 5 * time.Second, "udp", "UDP ("},
		"UDP with a ceiling":     {"", "--max-delay=3", []string{"udp:127.0.0.1:5353"}, 3 * time.Second, "udp", "UDP ("},
		"UDP beside TCP":         {"", "--max-delay=6", []string{"127.0.0.1:0", "udp:127.0.0.1:5353"}, quiet, "quiet", ""},
		"a client":               {"", "", []string{"client:"}, 0, "no_listener", ""},
		"a client, nobody":       {"uid=65534", "", []string{"client:"}, 0, "no_listener", ""},
		"a client, no netlink":   {"no-netlink", "--delay=1", nil, time.Second, "no_listener", "through /proc/net"},
		"a client, no /proc/net": {"no-proc-net", "--max-delay=3", nil, 3 * time.Second, "blind", "cannot observe the traffic"},
		"a client, no /proc":     {"no-proc", "--max-delay=3", nil, 3 * time.Second, "blind", "cannot observe the traffic"},
		"a client, no source":    {"no-proc,no-netlink", "--max-delay=3", nil, 3 * time.Second, "blind", "sock_diag: "},
		"an inherited listener":  {"", "", []string{"fd:"}, quiet, "quiet", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0); err == nil {
				unix.Close(fd)
			} else if name == "vsock" {
				t.Skip("no vsock: ", err)
			}
			n := box.NewNetwork(t)
			var l net.Listener
			if name == "an inherited listener" || name == "a client" || name == "a client, nobody" {
				l = n.Listen(t)
			}
			var files []*os.File
			for i, listen := range c.listens {
				switch listen {
				case "unix:PATH":
					c.listens[i] = "unix:" + t.TempDir() + "/socket"
				case "client:":
					c.listens[i] += l.Addr().String()
				case "fd:":
					files = append(files, testutil.Must(l.(*net.TCPListener).File()))
				}
			}
			b := box.Setup{Faults: c.faults, Network: n, Change: func(cmd *exec.Cmd) { cmd.ExtraFiles = files }}.
				Catch(t, strings.TrimSpace(flags+"--until=quiet "+c.flags), c.listens...)
			start := b.Trigger()
			if len(files) > 0 {
				_, b.Port, _ = net.SplitHostPort(l.Addr().String())
				start = shorts(b, "127.0.0.1").Add(-early)
			}
			b.WantHold(start, c.hold, c.reason)
			b.WantWarning(c.warning)
		})
	}
}

// TestUntilIgnored: traffic from an address of --ignore-peer, even as an IPv4-mapped IPv6
// address, and on a port of --ignore-port or missing from --count-port does not hold; other
// traffic does, be the floor kept.
func TestUntilIgnored(t *testing.T) {
	for name, c := range map[string]struct {
		from, flag, reason string
	}{
		"by default":     {"127.0.0.2", "", "ceiling"},
		"peer":           {"127.0.0.2", "--ignore-peer=127.0.0.2/32", "quiet"},
		"another peer":   {"127.0.0.3", "--ignore-peer=127.0.0.2/32", "ceiling"},
		"port":           {"127.0.0.2", "--ignore-port=9090", "quiet"},
		"not counted":    {"127.0.0.2", "--count-port=8080", "quiet"},
		"counted":        {"127.0.0.2", "--count-port=8080,9090", "ceiling"},
		"fixed delay":    {"127.0.0.2", "--until=elapsed --delay=3", "elapsed"},
		"fixed, ignored": {"127.0.0.2", "--until=elapsed --delay=3 --ignore-port=9090", "elapsed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := box.NewNetwork(t)
			given := strings.TrimSpace("--until=quiet --quiet-for=1 --max-delay=3 --grace-period=30 " + c.flag)
			if strings.HasPrefix(name, "fixed") {
				given = "--grace-period=30 " + c.flag
			}
			b := box.Setup{Network: n}.Catch(t, given, "[::]:8080", "[::]:9090")
			end := box.Repeat(90*time.Millisecond, func() {
				if conn, err := n.Connect(net.ParseIP(c.from), "127.0.0.1:9090"); err == nil {
					fmt.Fprintln(conn, "hello")
					conn.Read(make([]byte, 3))
					conn.Close()
				}
			})
			defer end()
			start := b.Trigger()
			hold := 3 * time.Second
			if c.reason == "quiet" {
				hold = quiet
			}
			r := b.WantHold(start, hold, c.reason)
			if counted := r.Accepted > 2; counted != (c.reason == "ceiling" || name == "fixed delay") { // the last connections may go uncounted
				t.Errorf("report %+v", r)
			}
		})
	}
}
