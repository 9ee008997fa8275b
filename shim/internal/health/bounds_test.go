package health

import (
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"

	"github.com/lameduck-init/lameduck/shim/internal/check"
)

// TestStuckClients: every check succeeds, and waits for no limit, beside three times as many stuck
// clients as there is room for.
func TestStuckClients(t *testing.T) {
	target := open(t, own)
	target.start(t)
	for _, spec := range []check.Spec{own, to(target.addr)} {
		for name, text := range map[string]string{
			"silent":        "",
			"half a head":   "GET / HTTP/1.1\r\n",
			"answer unread": request,
			"never reads":   strings.Repeat(request, 1000),
		} {
			l := open(t, spec)
			l.start(t)
			for i := range 3 * maxClients {
				stuck := dial(t, l.addr)
				go io.WriteString(stuck, text)
				if got := ask(t, l.addr); got != ok {
					t.Fatalf("check after %d clients, %s: %q", i+1, name, got)
				}
			}
		}
	}
}

// TestLongestSilent: one more client takes the place of the client that has been silent longest, and
// of no other.
func TestLongestSilent(t *testing.T) {
	l := open(t, own)
	var clients []*net.TCPConn
	for i := range maxClients {
		clients = append(clients, dial(t, l.addr))
		l.accept(t, i+1)
	}
	io.WriteString(clients[0], "GET / HTTP/1.1\r\n") // makes the second the one
	l.pollUntil(t, "the bytes are read", func() bool { return l.clients[0].target.up.end > 0 })
	dial(t, l.addr)
	l.accept(t, maxClients+1)
	wantReset(t, clients[1])
	if slices.ContainsFunc(l.clients[:], func(c client) bool { return c.conn < 0 }) {
		t.Error("another client has lost its place")
	}
}

// TestSilentCrowdSparesCommand: clients that send no byte are not connected to the command at once,
// however many they are.
func TestSilentCrowdSparesCommand(t *testing.T) {
	l := open(t, to(netip.MustParseAddrPort("127.0.0.1:1")))
	for i := range 2 * maxClients {
		dial(t, l.addr)
		l.accept(t, i+1)
	}
	if got := l.conns.Since(nil, time.Time{}); len(got) != 0 {
		t.Errorf("%d connections to the command, want none", len(got))
	}
	// With the real limit, such clients cannot fill the list of closed connections in the six
	// seconds for which it is asked.
	if n := 6 * time.Second / defaultLimits.greeting * maxClients; n > maxClosed {
		t.Errorf("up to %d connections in 6 s, more than the list remembers", n)
	}
}

// TestNoSpin: a client that waits for nothing does not wake the loop, however its two connections
// ended, and whichever end has sent more than the other reads.
func TestNoSpin(t *testing.T) {
	if p := events(9, false, false); p.Fd >= 0 {
		t.Error("the end of a socket that needs nothing would wake the loop")
	}
	data := make([]byte, 16<<20)
	for name, end := range map[string]func(client, server *net.TCPConn){
		"half-closed": func(client, server *net.TCPConn) { client.CloseWrite(); server.CloseWrite() },
		"client gone": func(client, _ *net.TCPConn) { client.Close() },
		"server gone": func(_, server *net.TCPConn) { server.Close() },
	} {
		for ahead := range 3 { // the client, the server, neither
			l, client, server := relayed(t)
			transfer(t, client, server, "GET")
			l.stop()
			if ahead < 2 {
				fill([]*net.TCPConn{client, server}[ahead], data)
			}
			end(client, server)
			testutil.Eventually(t, "nothing is ready: "+name, func() bool {
				for range 20 {
					l.prepare()
					if n, _ := unix.Poll(l.pollSet, 0); n == 0 {
						return true
					}
					l.SetMode(l.currentMode()) // poll(2) may have been interrupted, and nothing be ready
					l.pollOnce()
				}
				return false
			})
		}
	}
}

// TestScarce: without a free descriptor accepting pauses if there are no clients; otherwise the client
// that has been silent longest is reset for the next one, which stays.
func TestScarce(t *testing.T) {
	l := open(t, own)
	l.limits.retry = 20 * time.Millisecond
	var was unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_NOFILE, &was)
	limit := func(cur uint64) { unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: cur, Max: was.Max}) }
	silent := dial(t, l.addr)
	limit(uint64(testutil.LowestFree()))
	begin := time.Now()
	l.pollOnce()
	took := time.Since(begin)
	limit(was.Cur)
	if took < l.limits.retry {
		t.Errorf("accepting paused for %v, want %v", took, l.limits.retry)
	}

	l.accept(t, 1)
	next := dial(t, l.addr)
	limit(uint64(testutil.LowestFree()))
	l.accept(t, 2)
	for range 10 {
		l.SetMode(check.Pass)
		l.pollOnce()
	}
	limit(was.Cur)
	wantReset(t, silent)
	io.WriteString(next, request)
	l.pollUntil(t, "the answer is sent", func() bool { return l.clients[0].last == theListener })
	wantText(t, next, ok)
}
