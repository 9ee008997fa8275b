package e2e

import (
	"fmt"
	"net"
	"testing"
	"time"
)

// TestUntilStuck: connections wait in the accept queue and the server accepts none. If
// the server makes no other progress either, the server hangs, and the hold ends early.
func TestUntilStuck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stage  string
		kept   string // kind of an accepted connection beside the queue; "": no such connection
		hold   time.Duration
		reason string
	}{
		"hung":                             {"stage", "silent", 10 * time.Second, "no_progress"},
		"hung, nobody":                     {"stage:uid=65534", "silent", 10 * time.Second, "no_progress"},
		"hung, no netlink":                 {"stage:no-netlink", "", 10 * time.Second, "no_progress"},
		"others are served":                {"stage", "talking", 17 * time.Second, "ceiling"},
		"others are served, no netlink":    {"stage:no-netlink", "talking", 17 * time.Second, "ceiling"},
		"others may be served, no netlink": {"stage:no-netlink", "silent", 17 * time.Second, "ceiling"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			a := ns.bootUntil(c.stage, "settled", append(quiet1sFlags, "--max-delay=17"), helperCommand("few", fmt.Sprint(min(len(c.kept), 1)), "127.0.0.1:0")...)
			var kept *client
			if c.kept != "" {
				kept = a.dial("127.0.0.1")
				kept.ask("hello")
			}
			ns.fillAcceptQueue(a.addr("127.0.0.1"))
			end := func() {}
			if c.kept == "talking" {
				end = kept.keepTalking(100 * time.Millisecond)
			}
			start := a.trigger()
			a.out.wait(t, "got TERM")
			end()
			a.wantHoldSince(start, c.hold, c.reason)
		})
	}
}

// fillAcceptQueue connects until the accept queue is full and a connection attempt times
// out.
func (ns *namespace) fillAcceptQueue(address string) {
	ns.t.Helper()
	ns.do(func() {
		for n := 0; ; n++ {
			conn, err := net.DialTimeout("tcp", address, 300*time.Millisecond)
			if err != nil {
				if n == 0 {
					ns.t.Errorf("no connection got into the accept queue: %v", err)
				}
				return
			}
			ns.t.Cleanup(func() { conn.Close() })
			fmt.Fprintln(conn, "hello?")
		}
	})
}
