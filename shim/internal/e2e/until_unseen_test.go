package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestUntilUnseen: without --delay, the hold lasts 5 s for a server whose traffic cannot be
// observed, and ends at once only if the container certainly has no server.
func TestUntilUnseen(t *testing.T) {
	t.Parallel()
	const held = 5 * time.Second
	for name, c := range map[string]struct {
		socket  string
		hold    time.Duration
		reason  string
		warning string
	}{
		"abstract Unix socket": {"unix @app", held, "elapsed", "other traffic (Unix sockets) cannot be observed: the hold lasts 5 s"},
		"vsock":                {"vsock ", held, "elapsed", "other traffic (vsock sockets) cannot be observed"},
		"raw":                  {"raw ", held, "elapsed", "other traffic (raw sockets) cannot be observed"},
		"another namespace":    {"elsewhere ", held, "elapsed", "other traffic (another network namespace) cannot be observed"},
		"UDP, ephemeral port":  {"udp 127.0.0.1:0", held, "udp", "all listeners are UDP ("},
		"a worker":             {"client ", 0, "no_listener", ""},
		"a worker, nobody":     {"client ", 0, "no_listener", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "vsock" {
				fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
				if err != nil {
					t.Skip("no vsock: ", err)
				}
				unix.Close(fd)
			}
			ns := newNamespace(t)
			socket := c.socket
			if socket == "client " {
				socket += ns.listen()
			}
			stage := "stage"
			if name == "a worker, nobody" {
				stage = users["nobody"]
			}
			a := ns.bootUntil(stage, "quiet", []string{"--quiet-for=1", "--grace-period=30"}, helperCommand("app", socket)...)
			start := a.trigger()
			a.wantHoldSince(start, c.hold, c.reason)
			a.wantWarning(c.warning)
		})
	}
}

// TestUntilLatePort: a port that the server opens during the hold counts from then on, for
// new connections and for a request in flight. The server's first port may be closed.
func TestUntilLatePort(t *testing.T) {
	inEachScope(t, func(t *testing.T, ns *namespace, stage string) {
		a := ns.bootUntil(stage, "quiet", quiet1sFlags, helperCommand("app", "127.0.0.1:0")...)
		a.trigger()
		a.awaitEvents()
		a.shortConn("127.0.0.1")
		a.do("close")
		a.do("listen 127.0.0.1:7071")
		const late = "127.0.0.1:7071"
		repeatFor(2*quiet1s, 100*time.Millisecond, func() { // more than a second, in which the port is found
			c := ns.dial(late)
			c.ask("hello")
			c.Close()
		})
		a.wantHolding("a request on the late port had just ended")
		c := ns.dial(late)
		c.ask("hello")
		fmt.Fprintln(c, "slow")
		c.awaitReply()
		a.wantHoldSince(time.Now(), quiet1s-300*time.Millisecond, "quiet")
		if ports := a.figures().NewPorts; !slices.Equal(ports, []uint16{7071}) {
			t.Errorf("new ports %v, want 7071", ports)
		}
	})
}

// TestUntilListenersClosed: a server that has closed its listeners before the trigger has
// clients as long as a connection is open on a port that is no client's.
func TestUntilListenersClosed(t *testing.T) {
	inEachScope(t, func(t *testing.T, ns *namespace, stage string) {
		a := ns.bootUntil(stage, "quiet", quiet1sFlags, helperCommand("app", "127.0.0.1:7071")...)
		c := a.dial("127.0.0.1")
		c.ask("hello")
		fmt.Fprintln(c, "slow")
		a.do("close")
		a.trigger()
		c.awaitReply()
		a.wantHoldSince(time.Now(), quiet1s-300*time.Millisecond, "quiet")
	})
}
