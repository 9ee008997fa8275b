package e2e

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// Tests of long-lived connections, and of the remains of closed ones.

// keepTalking makes a request at every interval until end is called.
func (c *client) keepTalking(every time.Duration) (end func()) {
	return repeatEvery(every, func() {
		c.ask("hello")
	})
}

// TestUntilTalking: a long-lived connection with steady traffic, such as a WebSocket,
// prolongs the hold, except with --until=settled. Without netlink such traffic cannot be
// seen on the connection, whose queues are empty in every sample.
func TestUntilTalking(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		until  string
		talks  time.Duration // how long the connection talks after the trigger; an hour stands for "to the end"
		hold   time.Duration
		reason string
		stage  string
	}{
		"settled":                 {"settled", time.Hour, quiet1s, "settled", "stage"},
		"quiet, to the ceiling":   {"quiet", time.Hour, 4 * time.Second, "ceiling", "stage"},
		"drained, to the ceiling": {"drained", time.Hour, 4 * time.Second, "ceiling", "stage"},
		"quiet":                   {"quiet", time.Second, time.Second + quiet1s, "quiet", "stage"},
		"drained":                 {"drained", time.Second, 0, "drained", "stage"},
		"settled, no netlink":     {"settled", time.Hour, quiet1s, "settled", "stage:no-netlink"},
		"ceiling, no netlink":     {"quiet", time.Hour, 4 * time.Second, "ceiling", "stage:no-netlink"},
		"quiet, no netlink":       {"quiet", time.Second, time.Second + quiet1s, "quiet", "stage:no-netlink"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			a := ns.bootUntil(c.stage, c.until, append(quiet1sFlags, "--max-delay=4"), helperCommand("app", "127.0.0.1:0")...)
			kept := a.dial("127.0.0.1")
			kept.ask("hello")
			end := kept.keepTalking(50 * time.Millisecond)
			start := a.trigger()
			if c.talks == time.Hour {
				a.out.wait(t, "got TERM")
				end() // the server replies to the end
				a.wantHoldSince(start, c.hold, c.reason)
				a.wantOpen(1)
				return
			}
			time.Sleep(c.talks) // the traffic goes on
			end()
			if c.until == "drained" {
				time.Sleep(2 * quiet1s) // an idle connection, for longer than --quiet-for
				a.wantHolding("a connection was open")
				kept.Close()
				a.wantHoldSince(time.Now(), 0, c.reason)
				a.wantOpen(0)
				return
			}
			a.wantHoldSince(start, c.hold-100*time.Millisecond, c.reason)
		})
	}
}

// TestUntilIdle: a pool of idle connections prolongs the hold only with --until=drained.
func TestUntilIdle(t *testing.T) {
	t.Parallel()
	for user, stage := range users {
		for _, until := range []string{"quiet", "drained"} {
			t.Run(user+"/pool/"+until, func(t *testing.T) {
				t.Parallel()
				ns := newNamespace(t)
				a := ns.bootUntil(stage, until, append(quiet1sFlags, "--max-delay=4"), helperCommand("app", "[::]:0")...)
				for range 50 {
					a.dial("127.0.0.1").ask("hello")
				}
				a.dial("::1") // a connection without a request
				start := a.trigger()
				if until == "quiet" {
					a.wantHoldSince(start, quiet1s, "quiet")
				} else {
					a.wantHoldSince(start, 4*time.Second, "ceiling")
				}
				a.wantOpen(51)
				if n := a.figures().InFlight; n == nil || *n != 0 {
					t.Errorf("report: %s\nwant no request in flight", a.report())
				}
			})
		}
	}
}

// TestUntilHalfClosed: a connection that the client has closed and the server never
// closes does not prolong the hold. While the server has not read the end, a request may
// be in flight, until --max-silence.
func TestUntilHalfClosed(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{"leaked": "leak", "unread": "slow"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			a := ns.bootUntil("stage", "drained", append(quiet1sFlags, "--max-silence=2"), helperCommand("app", "127.0.0.1:0")...)
			for range 20 {
				conn := a.dial("127.0.0.1")
				conn.ask("hello")
				fmt.Fprintln(conn, line)
				conn.Close()
			}
			start := a.trigger()
			a.wantHoldSince(start, quiet1s, "drained")
		})
	}
}

// TestUntilTimeWait: connections in TIME_WAIT do not prolong the hold.
func TestUntilTimeWait(t *testing.T) {
	t.Parallel()
	for user, stage := range map[string]string{"root": "stage", "nobody": "stage:uid=65534", "no netlink": "stage:no-netlink"} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			const many = 5000
			ns := newNamespace(t)
			a := ns.bootUntil(stage, "drained", quiet1sFlags, helperCommand("app", "127.0.0.1:0")...)
			ns.do(func() {
				for range many {
					conn, err := net.Dial("tcp", a.addr("127.0.0.1"))
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprintln(conn, "bye")
					for b := make([]byte, 8); err == nil; _, err = conn.Read(b) {
					}
					conn.Close()
				}
			})
			if n := a.timeWait(); n < many/2 { // the kernel may have reused some ports
				t.Fatalf("%d connections are in TIME_WAIT, want at least %d", n, many/2)
			}
			start := a.trigger()
			a.wantHoldSince(start, quiet1s, "drained")
			a.wantOpen(0)
		})
	}
}

// timeWait returns the number of connections in TIME_WAIT.
func (a *app) timeWait() (n int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/sockstat", a.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(text), " tw ")
	fmt.Sscan(rest, &n)
	return n
}

// TestUntilOutbound: connections that the server itself opens, to other servers or to
// itself, do not prolong the hold.
func TestUntilOutbound(t *testing.T) {
	t.Parallel()
	for user, stage := range users {
		for name, command := range map[string]string{"elsewhere": "call", "elsewhere, one": "talk", "itself": "talk", "itself, as if IPv6": "talk"} {
			t.Run(user+"/"+name, func(t *testing.T) {
				t.Parallel()
				ns := newNamespace(t)
				address := "127.0.0.1:0"
				if name == "itself, as if IPv6" {
					address = "[::]:0"
				}
				a := ns.bootUntil(stage, "drained", append(quiet1sFlags, "--max-delay=6"), helperCommand("app", address)...)
				to := a.addr("127.0.0.1")
				if strings.HasPrefix(name, "elsewhere") {
					to = ns.listen()
				}
				a.do(command + " " + to)
				start := a.trigger()
				a.wantHoldSince(start, quiet1s, "drained")
			})
		}
	}
}
