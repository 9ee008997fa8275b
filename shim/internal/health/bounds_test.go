package health

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"

	"github.com/lameduck-init/lameduck/shim/internal/check"
)

// TestStuckClients tests checks beside three times as many clients as there is room for, each
// stuck or hostile in one way: every check succeeds, and waits for no limit.
func TestStuckClients(t *testing.T) {
	request := "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	write := func(text string) func(c *net.TCPConn) {
		return func(c *net.TCPConn) { io.WriteString(c, text) }
	}
	misuses := map[string]func(c *net.TCPConn){
		"silent":     func(*net.TCPConn) {},
		"one byte":   write("G"),
		"half head":  write("GET / HTTP/1.1\r\nHost: x\r\n"),
		"keep-alive": write(request),
		"half-close": func(c *net.TCPConn) { io.WriteString(c, "G"); c.CloseWrite() },
		"trickle":    trickle,
		"never read": func(c *net.TCPConn) {
			go func() {
				for range 100 {
					if _, err := io.WriteString(c, request); err != nil {
						return
					}
				}
			}()
		},
	}
	for name, target := range map[string]netip.AddrPort{"relayed": web(t, "127.0.0.1:0"), "own": {}} {
		for misuse, do := range misuses {
			t.Run(name+" "+misuse, func(t *testing.T) {
				l := open(t, loopback(target))
				l.limits = limits{greeting: time.Hour, request: time.Hour, kept: time.Hour, end: time.Hour, retry: time.Hour}
				start(t, l)
				for i := range 3 * maxClients {
					do(dial(t, l.addr()))
					if status, _, err := askHealth(newClient(), l.url()); status != 200 {
						t.Fatalf("check after %d clients: %d, %v", i+1, status, err)
					}
				}
			})
		}
	}
}

// trickle sends a byte every millisecond, until a write fails.
func trickle(c *net.TCPConn) {
	go func() {
		for range time.Tick(time.Millisecond) {
			if _, err := io.WriteString(c, "G"); err != nil {
				return
			}
		}
	}()
}

// TestLongestSilent tests that one more client takes the place of the client that has been
// silent longest, and of no other.
func TestLongestSilent(t *testing.T) {
	l := open(t, loopbackOnly())
	var clients []*net.TCPConn
	for i := range maxClients {
		clients = append(clients, dial(t, l.addr()))
		pollUntil(t, l, "a client is accepted", func() bool { return l.count() == i+1 })
	}
	// The third client is the oldest that sends no further byte.
	for _, i := range []int{5, 0, 1} {
		io.WriteString(clients[i], "GET / HTTP/1.1\r\n")
		pollUntil(t, l, "the bytes are read", func() bool { return !l.clients[i].up.isEmpty() })
	}
	clients = append(clients, dial(t, l.addr()))
	pollUntil(t, l, "one more client is accepted", func() bool { return l.Opens() == maxClients+1 })
	wantReset(t, clients[2])
	for i, c := range clients {
		if i != 2 {
			io.WriteString(c, map[bool]string{true: "\r\n", false: "GET / HTTP/1.1\r\n\r\n"}[i == 0 || i == 1 || i == 5])
		}
	}
	pollUntil(t, l, "all others are answered", func() bool {
		n := 0
		for i := range l.clients {
			if l.clients[i].answered {
				n++
			}
		}
		return n == maxClients
	})
	for i, c := range clients {
		if i != 2 {
			wantStatus(t, c, 200)
		}
	}
}

// wantReset wants a reset before any byte.
func wantReset(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetDeadline(time.Now().Add(testutil.Patience))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("Read = %v, want a reset", err)
	}
}

// TestSilentCrowdSparesCommand tests that clients that send no byte are not connected to the
// command at once: any number of them makes no connection there.
func TestSilentCrowdSparesCommand(t *testing.T) {
	_, at := app(t, "127.0.0.1:0")
	l := open(t, loopback(at))
	l.limits.greeting = time.Hour
	for i := range 5 * maxClients {
		dial(t, l.addr())
		pollUntil(t, l, "a client is accepted", func() bool { return l.Opens() == uint64(i+1) })
	}
	if got := l.Proxied(nil, time.Time{}); len(got) != 0 {
		t.Errorf("%d connections to the command, want none", len(got))
	}
	// With the real limit, such clients cannot fill the list of closed connections in the six
	// seconds for which it is asked.
	if n := 6 * time.Second / defaultLimits.greeting * maxClients; n > maxClosed {
		t.Errorf("up to %d connections in 6 s, more than the list remembers", n)
	}
}

// pollUntil serves without blocking until ok returns true.
func pollUntil(t *testing.T, l *listenerAt, what string, ok func() bool) {
	t.Helper()
	testutil.Eventually(t, what, func() bool {
		l.SetMode(l.currentMode()) // ends the wait
		l.pollOnce()
		return ok()
	})
}

// count returns the number of clients.
func (l *Listener) count() (n int) {
	for i := range l.clients {
		if l.clients[i].conn >= 0 {
			n++
		}
	}
	return n
}

// TestNoSpin tests that a client that waits for nothing does not wake the loop, whatever state
// its two connections are in.
func TestNoSpin(t *testing.T) {
	for name, do := range map[string]func(client, server *net.TCPConn){
		"idle":               func(client, server *net.TCPConn) {},
		"client half-closed": func(client, server *net.TCPConn) { client.CloseWrite() },
		"server half-closed": func(client, server *net.TCPConn) { server.CloseWrite() },
		"client gone":        func(client, server *net.TCPConn) { client.CloseWrite(); client.Close() },
		"client gone, server stuck": func(client, server *net.TCPConn) {
			client.CloseWrite()
			client.SetLinger(0)
			client.Close()
			fill(server)
		},
		"server gone":  func(client, server *net.TCPConn) { server.Close() },
		"server stuck": func(client, server *net.TCPConn) { fill(client) },
		"client stuck": func(client, server *net.TCPConn) { fill(server) },
		"client stuck, server gone": func(client, server *net.TCPConn) {
			fill(server)
			server.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, at := app(t, "127.0.0.1:0")
			l := open(t, loopback(at))
			client := dial(t, l.addr())
			io.WriteString(client, "GET")
			pollUntil(t, l, "the client is relayed", func() bool { return l.clients[0].connected })
			do(client, accept(t, a))
			testutil.Eventually(t, "nothing is ready", func() bool {
				for range 20 {
					l.prepare()
					if n, _ := unix.Poll(l.pollSet, 0); n == 0 {
						return true
					}
					l.pollOnce()
				}
				return false
			})
		})
	}
}

// fill writes until the write would wait.
func fill(c *net.TCPConn) {
	c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	c.Write(make([]byte, 16<<20))
}

// TestScarce tests that without a free descriptor the client that has been silent longest is
// reset for the next client, which stays.
func TestScarce(t *testing.T) {
	l := open(t, loopbackOnly())
	silent := dial(t, l.addr())
	pollUntil(t, l, "a client is accepted", func() bool { return l.count() == 1 })
	next := dial(t, l.addr())
	restore := exhaust(t)
	pollUntil(t, l, "the next client has the place", func() bool { return l.Opens() == 2 && l.count() == 1 })
	for range 10 {
		l.SetMode(check.Pass)
		l.pollOnce()
	}
	restore()
	io.WriteString(next, "GET / HTTP/1.1\r\n\r\n")
	pollUntil(t, l, "the answer is sent", func() bool { return l.clients[0].answered })
	wantStatus(t, next, 200)
	wantReset(t, silent)
}

// TestScarceAlone tests that without a free descriptor and without clients accepting pauses.
func TestScarceAlone(t *testing.T) {
	l := open(t, loopbackOnly())
	l.limits.retry = 20 * time.Millisecond
	waiting := dial(t, l.addr())
	restore := exhaust(t)
	begin := time.Now()
	for range 3 {
		l.pollOnce()
	}
	if took := time.Since(begin); took < 3*l.limits.retry {
		t.Errorf("accepting three times took %v, want %v at least", took, 3*l.limits.retry)
	}
	restore()
	io.WriteString(waiting, "GET / HTTP/1.1\r\n\r\n")
	pollUntil(t, l, "the answer is sent", func() bool { return l.clients[0].answered })
	wantStatus(t, waiting, 200)
}

// exhaust leaves this process no free descriptor.
func exhaust(t *testing.T) (restore func()) {
	t.Helper()
	var was unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	next, err := unix.Dup(2)
	must(t, err)
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next + 1), Max: was.Max}))
	taken := []int{next}
	for err == nil { // fill the gaps below the limit
		next, err = unix.Dup(2)
		if err == nil {
			taken = append(taken, next)
		}
	}
	return func() {
		must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
		for _, fd := range taken {
			unix.Close(fd)
		}
	}
}

// TestProxied tests that Proxied returns the connections to the app, open or closed
// since the given time.
func TestProxied(t *testing.T) {
	seen := make(chan netip.AddrPort, 100)
	at := webOf(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		seen <- netip.MustParseAddrPort(r.RemoteAddr)
	})
	l := serve(t, loopback(at))
	start := time.Now()
	const checks = 20
	for range checks {
		wantCheck(t, newClient(), l.url(), 200, "")
		local := <-seen
		if got := l.Proxied(nil, start); !slices.Contains(got, ProxiedConn{Local: local, Target: at}) {
			t.Fatalf("Proxied = %v, without %v", got, local)
		}
	}
	testutil.Eventually(t, "all connections are closed", func() bool { return len(l.Proxied(nil, time.Now())) == 0 })
	if got := l.Proxied(nil, start); len(got) != checks {
		t.Errorf("Proxied returns %d connections, want %d", len(got), checks)
	}
	if n := l.Opens(); n != 2*checks {
		t.Errorf("%d passive opens, want %d, here and at the app", n, 2*checks)
	}
}

// TestProxiedConns tests that the list is bounded, and drops the oldest connections.
func TestProxiedConns(t *testing.T) {
	p := proxiedConns{open: make(map[int]ProxiedConn)}
	conn := func(i int) ProxiedConn {
		return ProxiedConn{Local: netip.AddrPortFrom(netip.IPv6Loopback(), uint16(i+1))}
	}
	start := time.Now()
	for i := range 3 * maxClosed {
		p.open[i] = conn(i)
		p.markClosed(i)
	}
	got := p.Proxied(nil, start)
	if len(got) != maxClosed || got[0] != conn(2*maxClosed) || got[maxClosed-1] != conn(3*maxClosed-1) {
		t.Errorf("%d connections are listed, want the latest %d", len(got), maxClosed)
	}
	p.open[3] = conn(1)
	if got := p.Proxied(nil, time.Now().Add(time.Hour)); !slices.Equal(got, []ProxiedConn{conn(1)}) {
		t.Errorf("listed %v, want the open connection alone", got)
	}
}
