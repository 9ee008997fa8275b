// Package hold_test tests what only the built binary with real sockets can show of a hold: which
// traffic counts, in pods and under faults, and lameduck hold and watch. When traffic has ended is
// the business of package traffic and of the laboratory's truth table.
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
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

func TestMain(m *testing.M) { box.Main(m, map[string]func([]string){"advised": serveAdvised}) }

// quiet is the silence of the tests, and early how much sooner than that a hold may end, by the
// test's clock.
const (
	quiet = time.Second
	early = 300 * time.Millisecond
)

// flags end a hold after the silence.
const flags = "--quiet-for=1 --grace-period=30 "

// shorts makes a request on a short connection ten times a second for two silences, wants
// the hold to go on, and returns the time of the last.
func shorts(b *box.Box, host string) time.Time {
	b.T.Helper()
	return b.Busy(quiet, 100*time.Millisecond, func() { b.ShortConn(host) })
}

// TestUntil: what counts as traffic under faults and filters, and how long a hold lasts where
// traffic cannot be observed. New connections hold, from the last one of "clients" on, and an idle
// one does not. Without netlink or parts of /proc, lameduck warns once. A source that cannot be
// read never counts as silence, and a hold ends at once only if the container certainly has no
// server. (4 s is the time after which a hold is too long: see box.Slack.)
func TestUntil(t *testing.T) {
	t.Parallel()
	box.Each(t, `
		case                     | faults                 | flags                     | listens               | clients   | count | hold | reason      | observer  | scope       | warning
		nobody                   | uid=65534              |                           | [::]:0                | 127.0.0.1 | yes   | 1s   | quiet       | sock_diag | descriptors |
		denied calls             | seccomp                |                           | [::]:0                | ::1       | yes   | 1s   | quiet       | sock_diag | descriptors |
		no netlink group         | no-groups              |                           | 127.0.0.1:0           | 127.0.0.1 | yes   | 1s   | quiet       | sock_diag | descriptors |
		no netlink               | no-netlink             |                           | [::]:0                | 127.0.0.1 | yes   | 1s   | quiet       | /proc/net | descriptors | sock_diag:
		no netlink, nobody       | no-netlink,uid=65534   |                           | [::]:0                | ::1       | yes   | 1s   | quiet       | /proc/net | descriptors | sock_diag:
		no /proc                 | no-proc                |                           | [::]:0                | 127.0.0.1 | yes   | 1s   | quiet       | sock_diag | namespace   |
		no /proc, no group       | no-proc,no-groups      | --max-delay=5             | [::]:0                | 127.0.0.1 | yes   | 5s   | ceiling     | sock_diag | namespace   | a sample
		no source                | no-proc-net,no-netlink | --max-delay=5             | [::]:0                | 127.0.0.1 | yes   | 5s   | blind       | none      |             | sock_diag:
		another peer             |                        | --ignore-peer=10.0.0.0/8  | [::]:0                | 127.0.0.1 | yes   | 1s   | quiet       | sock_diag | descriptors |
		ignored peer             |                        | --ignore-peer=127.0.0.0/8 | [::]:0                | 127.0.0.1 | no    | 1s   | quiet       | sock_diag | descriptors |
		ignored port             |                        | --ignore-port=8080        | [::]:8080 [::]:9090   | 127.0.0.1 | no    | 1s   | quiet       | sock_diag | descriptors |
		port not counted         |                        | --count-port=9090         | [::]:8080 [::]:9090   | 127.0.0.1 | no    | 1s   | quiet       | sock_diag | ports       |
		nothing on the port      |                        | --count-port=9999         | [::]:8080             | 127.0.0.1 | yes   | 1s   | quiet       | sock_diag | descriptors | nothing listens on --count-port=9999 
		no GOAWAY there          |                        | --goaway=9999             | [::]:8080             | 127.0.0.1 | yes   | 1s   | quiet       | sock_diag | descriptors | is no port that counts
		Unix socket              | uid=65534              |                           | unix:@app             |           |       | 5s   | elapsed     |           |             | (Unix sockets)
		Unix socket beside TCP   |                        |                           | 127.0.0.1:0 unix:@app |           |       | 1s   | quiet       |           |             |
		UDP                      | uid=65534              |                           | udp:[::]:5353         |           |       | 1s   | quiet       |           |             |
		UDP, no /proc/net        | no-proc-net            | --max-delay=3             | udp:[::]:5353         |           |       | 3s   | blind       |           |             | cannot observe
		UDP, and a Unix socket   |                        |                           | udp:[::]:5353 unix:@app |         |       | 5s   | quiet       |           |             |
		UDP beside TCP           |                        |                           | 127.0.0.1:0 udp:[::]:5353 |       |       | 1s   | quiet       |           |             |
		another namespace        |                        | --delay=1                 | elsewhere:            |           |       | 1s   | elapsed     |           |             | (another network
		one that is inherited    |                        | --delay=1                 | fd:                   |           |       | 1s   | elapsed     |           |             | (inherited sockets)
		a client                 |                        |                           | client:NEIGHBOR       |           |       |      | no_listener |           |             |
		a client, nobody         | uid=65534              |                           | client:NEIGHBOR       |           |       |      | no_listener |           |             |
		a client, no netlink     | no-netlink             | --delay=1                 |                       |           |       | 1s   | no_listener |           |             | through /proc/net
		a client, no /proc/net   | no-proc-net            | --max-delay=3             |                       |           |       | 3s   | blind       |           |             | cannot observe
		a client, no /proc       | no-proc                | --max-delay=3             |                       |           |       | 3s   | blind       |           |             | cannot observe
	`, func(t *testing.T, c box.Row) {
		n := box.NewNetwork(t)
		s := box.Setup{Faults: c["faults"], Network: n, Env: []string{"GODEBUG=asyncpreemptoff=1"}} // no second execution
		listens := c["listens"]
		switch listens {
		case "client:NEIGHBOR":
			listens = "client:" + n.Neighbor(t).Addr("127.0.0.1")
		case "fd:": // by the socket activation of podman, for example
			var outside *box.Network
			l := testutil.Must(outside.Listen(t, "127.0.0.1:0").(*net.TCPListener).File())
			s.Env = append(s.Env, "LISTEN_FDS=1")
			s.Change = func(cmd *exec.Cmd) { cmd.ExtraFiles = []*os.File{l} }
		}
		b := s.Catch(t, flags+"--until=quiet "+c["flags"], strings.Fields(listens)...)
		if c["clients"] != "" {
			b.Dial(c["clients"]).Ask("hello")
		}
		start := b.Trigger()
		switch c["count"] {
		case "yes":
			last := shorts(b, c["clients"])
			if c["reason"] == "quiet" {
				start = last.Add(-early)
			}
		case "no":
			end := box.Repeat(100*time.Millisecond, func() { b.ShortConn(c["clients"]) })
			b.Out.Wait("got TERM")
			end() // while the server still answers
		}
		least, _ := time.ParseDuration(c["hold"])
		r := b.WantHold(start, least, c["reason"])
		if c["observer"] != "" && (r.Observer != c["observer"] || r.Scope != c["scope"]) || c["count"] == "no" && r.Accepted != 0 ||
			r.Observer == "none" && (r.Accepted != -1 || r.Open != -1 || r.InFlight != -1) {
			t.Errorf("report %+v, want observer %q, scope %q, connections: %q", r, c["observer"], c["scope"], c["count"])
		}
		b.WantWarning(c["warning"])
	})
}

// TestDatagrams: where all listeners are UDP, datagrams hold, as do those that a neighbor receives.
func TestDatagrams(t *testing.T) {
	t.Parallel()
	box.Each(t, `
		case       | faults     | listens            | to                 | flags
		IPv4       |            | udp:127.0.0.1:5353 | 127.0.0.1:5353     | --until=quiet
		IPv6       |            | udp:[::]:5353      | [::1]:5353         | --until=settled
		IPv4 mapped | uid=65534 | udp:[::]:5353      | 127.0.0.1:5353     | --until=drained
		no netlink | no-netlink | udp:[::]:5353      | [::1]:5353         | --until=quiet
		neighbor   |            | udp:127.0.0.1:5353 | 127.0.0.1:5354     | --until=quiet
	`, func(t *testing.T, c box.Row) {
		n := box.NewNetwork(t)
		box.Setup{Network: n}.Start(t, box.Helper("catch", "udp:127.0.0.1:5354")...).Ready()
		b := box.Setup{Faults: c["faults"], Network: n}.Catch(t, flags+c["flags"], c["listens"])
		b.Trigger()
		last := b.Busy(quiet, 100*time.Millisecond, func() {
			n.Do(func() {
				conn := testutil.Must(net.Dial("udp", c["to"]))
				defer conn.Close()
				fmt.Fprintln(conn, "hello")
			})
		})
		_, until, _ := strings.Cut(c["flags"], "=")
		r := b.WantHold(last.Add(-early), quiet, until)
		if r.Observer != "/proc/net/snmp" || r.Accepted != -1 || r.LastByteMS < 1000 || !strings.Contains(r.Message, "held by datagrams until +") {
			t.Errorf("report %+v", r)
		}
	})
}

// TestLull: a hold that ends amid requests, which may come on new connections, waits for a lull
// until the end of the search. What is a lull, package stop and the laboratory test.
func TestLull(t *testing.T) {
	t.Parallel()
	const searchEnds = 1500 // ms after TERM
	b := box.Setup{Network: box.NewNetwork(t)}.Catch(t, "--delay=1 --grace-period=30", "127.0.0.1:0")
	wait := func() { fmt.Fprintln(b.Dial("127.0.0.1"), "wait") }
	wait()
	wait()
	b.Play("waits / waits / TERM")
	end := box.Repeat(5*time.Millisecond, func() { wait(); b.Send("reply") })
	b.Play("got TERM")
	end()
	b.Exit()
	if r := b.Report(); r.Ended != "elapsed" || r.InFlight == 0 || r.Sent[0].AtMS < searchEnds {
		t.Errorf("report %+v, want the signal at the end of the search", r)
	}
}
