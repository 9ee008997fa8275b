package hold_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestUntilSources: short connections hold, and an idle one does not, whichever source and
// address family there is. Without netlink or parts of /proc, lameduck is less certain, and
// warns once. A source that cannot be read never counts as silence.
func TestUntilSources(t *testing.T) {
	for _, c := range box.Table(`
		case                     | faults                 | listen      | host      | observer  | scope       | warning
		all                      |                        | [::]:0      | 127.0.0.1 | sock_diag | descriptors |
		all, IPv4                |                        | 127.0.0.1:0 | 127.0.0.1 | sock_diag | descriptors |
		all, IPv6                |                        | [::]:0      | ::1       | sock_diag | descriptors |
		all, nobody              | uid=65534              | [::]:0      | 127.0.0.1 | sock_diag | descriptors |
		all, denied calls        | seccomp                | [::]:0      | 127.0.0.1 | sock_diag | descriptors |
		no netlink group         | no-groups              | [::]:0      | 127.0.0.1 | sock_diag | descriptors |
		no netlink               | no-netlink             | [::]:0      | 127.0.0.1 | /proc/net | descriptors | sock_diag:
		no netlink, IPv6         | no-netlink             | [::]:0      | ::1       | /proc/net | descriptors | sock_diag:
		no netlink, nobody       | no-netlink,uid=65534   | [::]:0      | 127.0.0.1 | /proc/net | descriptors | sock_diag:
		no /proc/net             | no-proc-net            | [::]:0      | 127.0.0.1 | sock_diag | descriptors |
		no /proc                 | no-proc                | [::]:0      | 127.0.0.1 | sock_diag | namespace   |
		no /proc, nobody         | no-proc,uid=65534      | [::]:0      | 127.0.0.1 | sock_diag | namespace   |
		no /proc, no group       | no-proc,no-groups      | [::]:0      | 127.0.0.1 | sock_diag | namespace   | a sample
		no /proc/net, no netlink | no-proc-net,no-netlink | [::]:0      | 127.0.0.1 | none      |             | sock_diag:
		no /proc, no netlink     | no-proc,no-netlink     | [::]:0      | 127.0.0.1 | none      |             | sock_diag:
		another user's program   | no-ptrace              | 127.0.0.1:0 | 127.0.0.1 | sock_diag | namespace   |
	`) {
		t.Run(c["case"], func(t *testing.T) {
			t.Parallel()
			command := box.Helper("catch", c["listen"])
			if c["faults"] == "no-ptrace" {
				box.NeedsRoot(t)
				command = box.Helper("as", append([]string{"1000"}, command[2:]...)...)
			}
			// no second execution
			s := box.Setup{Faults: c["faults"], Network: box.NewNetwork(t), Env: []string{"GODEBUG=asyncpreemptoff=1"}}
			b := s.Boot(t, flags+"--until=quiet --max-delay=5", command...)
			b.Ready()
			b.Dial(c["host"]).Ask("hello") // an idle connection
			start := b.Trigger()
			last := shorts(b, c["host"])
			var r box.Report
			switch {
			case c["observer"] == "none":
				if r = b.WantHold(start, 5*time.Second, "blind"); r.Accepted != -1 || r.Open != -1 || r.InFlight != -1 {
					t.Errorf("report %+v, want no figures", r)
				}
			case c["warning"] == "a sample": // connections shorter than a sample cannot be seen at all
				r = b.WantHold(start, 5*time.Second, "ceiling")
			default:
				r = b.WantHold(last, quiet-early, "quiet")
			}
			if r.Observer != c["observer"] || r.Scope != c["scope"] {
				t.Errorf("report %+v, want observer %s and scope %s", r, c["observer"], c["scope"])
			}
			b.WantWarning(c["warning"])
		})
	}
}

// TestUntilStarved: requests during a time in which lameduck could not run do not count as
// silence.
func TestUntilStarved(t *testing.T) {
	for name, faults := range map[string]string{"sock_diag": "", "proc": "no-netlink"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := box.Setup{Faults: faults, Network: box.NewNetwork(t)}.Catch(t, flags+"--until=quiet --log-level=debug",
				"127.0.0.1:0")
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
	for _, c := range box.Table(`
		case                   | faults             | flags         | listens                   | hold | reason      | warning
		Unix socket            |                    | --delay=1     | unix:PATH                 | 1s   | elapsed     | (Unix sockets)
		Unix socket, nobody    | uid=65534          |               | unix:@app                 | 5s   | elapsed     | (Unix sockets)
		Unix socket beside TCP |                    |               | 127.0.0.1:0 unix:@app     | 1s   | quiet       |
		vsock                  |                    | --delay=1     | vsock:                    | 1s   | elapsed     | (vsock sockets)
		raw                    |                    | --delay=1     | raw:                      | 1s   | elapsed     | (raw sockets)
		another namespace      |                    | --delay=1     | elsewhere:                | 1s   | elapsed     | (another network
		UDP                    |                    | --delay=1     | udp:127.0.0.1:5353        | 1s   | udp         | UDP (
		UDP, nobody            | uid=65534          | --delay=1     | udp:[::]:5353             | 1s   | udp         | UDP (
		UDP, ephemeral port    |                    |               | udp:127.0.0.1:0           | 5s   | udp         | UDP (
		UDP with a ceiling     |                    | --max-delay=3 | udp:127.0.0.1:5353        | 3s   | udp         | UDP (
		UDP beside TCP         |                    | --max-delay=6 | 127.0.0.1:0 udp:[::]:5353 | 1s   | quiet       |
		a client               |                    |               | client:                   |      | no_listener |
		a client, nobody       | uid=65534          |               | client:                   |      | no_listener |
		a client, no netlink   | no-netlink         | --delay=1     |                           | 1s   | no_listener | through /proc/net
		a client, no /proc/net | no-proc-net        | --max-delay=3 |                           | 3s   | blind       | cannot observe
		a client, no /proc     | no-proc            | --max-delay=3 |                           | 3s   | blind       | cannot observe
		a client, no source    | no-proc,no-netlink | --max-delay=3 |                           | 3s   | blind       | sock_diag:
		an inherited listener  |                    |               | fd:                       | 1s   | quiet       |
		one of another network |                    | --delay=1     | activated:                | 1s   | elapsed     | (inherited sockets)
	`) {
		t.Run(c["case"], func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat("/dev/vsock"); err != nil && c["case"] == "vsock" {
				t.Skip("no vsock: ", err)
			}
			n := box.NewNetwork(t)
			listens := strings.ReplaceAll(c["listens"], "PATH", t.TempDir()+"/socket")
			var files []*os.File
			var port string
			if listens == "client:" || listens == "fd:" {
				l := n.Listen(t)
				_, port, _ = net.SplitHostPort(l.Addr().String())
				if listens == "fd:" {
					files = append(files, testutil.Must(l.(*net.TCPListener).File()))
				} else {
					listens += "127.0.0.1:" + port
				}
			}
			setup := box.Setup{Faults: c["faults"], Network: n, Change: func(cmd *exec.Cmd) { cmd.ExtraFiles = files }}
			if listens == "activated:" { // by the socket activation of podman, for example
				var outside *box.Network
				l := outside.Listen(t)
				files = append(files, testutil.Must(l.(*net.TCPListener).File()))
				setup.Env = []string{"LISTEN_FDS=1"}
				listens = "fd:"
			}
			b := setup.Catch(t, flags+"--until=quiet "+c["flags"], strings.Fields(listens)...)
			start := b.Trigger()
			if c["listens"] == "fd:" {
				b.Port = port
				start = shorts(b, "127.0.0.1").Add(-early)
			}
			b.WantHold(start, c.Time("hold"), c["reason"])
			b.WantWarning(c["warning"])
		})
	}
}

// TestUntilIgnored: traffic from an address of --ignore-peer, even as an IPv4-mapped IPv6
// address, and on a port of --ignore-port or missing from --count-port does not hold; other
// traffic does, be the floor kept.
func TestUntilIgnored(t *testing.T) {
	for _, c := range box.Table(`
		case           | flags                                                                | hold | reason  | counted
		by default     | --until=quiet --quiet-for=1 --max-delay=3                            | 3s   | ceiling | true
		another peer   | --until=quiet --quiet-for=1 --max-delay=3 --ignore-peer=127.0.0.3/32 | 3s   | ceiling | true
		peer           | --until=quiet --quiet-for=1 --ignore-peer=127.0.0.2/32               | 1s   | quiet   | false
		port           | --until=quiet --quiet-for=1 --ignore-port=9090                       | 1s   | quiet   | false
		not counted    | --until=quiet --quiet-for=1 --count-port=8080                        | 1s   | quiet   | false
		fixed delay    | --delay=3                                                            | 3s   | elapsed | true
		fixed, ignored | --delay=3 --ignore-port=9090                                         | 3s   | elapsed | false
	`) {
		t.Run(c["case"], func(t *testing.T) {
			t.Parallel()
			n := box.NewNetwork(t)
			b := box.Setup{Network: n}.Catch(t, "--grace-period=30 "+c["flags"], "[::]:8080", "[::]:9090")
			end := box.Repeat(90*time.Millisecond, func() {
				if conn, err := n.Connect(net.IPv4(127, 0, 0, 2), "127.0.0.1:9090"); err == nil {
					fmt.Fprintln(conn, "hello")
					conn.Read(make([]byte, 3))
					conn.Close()
				}
			})
			defer end()
			r := b.WantHold(b.Trigger(), c.Time("hold"), c["reason"])
			if counted := fmt.Sprint(r.Accepted > 2); counted != c["counted"] { // the last connections may go uncounted
				t.Errorf("report %+v", r)
			}
		})
	}
}
