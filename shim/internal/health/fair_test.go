package health

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestPeerOf tests networks: an IPv4 address, mapped or not, is a network of its own;
// the network of an IPv6 address is the /64.
func TestPeerOf(t *testing.T) {
	for addr, network := range map[string]string{
		"192.0.2.1":          "192.0.2.1",
		"::ffff:192.0.2.1":   "192.0.2.1",
		"2001:db8:1:2::3":    "2001:db8:1:2::",
		"2001:db8:1:2:3::":   "2001:db8:1:2::",
		"2001:db8:1:3::3":    "2001:db8:1:3::",
		"fe80::1%eth0":       "fe80::",
		"2001:db8:1:2:ff::9": "2001:db8:1:2::",
	} {
		a := netip.MustParseAddr(addr)
		want := peer{network: netip.MustParseAddr(network), addr: a.Unmap().WithZone("")}
		if got := peerOf(a); got != want {
			t.Errorf("%s: %v, want %v", addr, got, want)
		}
	}
}

// TestVictim tests the order in which clients are reset.
func TestVictim(t *testing.T) {
	now := time.Now()
	of := func(addr string, c client) client {
		c.from = peerOf(netip.MustParseAddr(addr))
		return c
	}
	busy := client{phase: relaying, hasSent: true, lastByte: now}
	idle := client{phase: relaying, hasSent: true, lastByte: now.Add(-time.Hour)}
	silent := client{phase: connecting, lastByte: now.Add(-time.Second)}
	silentLonger := client{phase: reading, lastByte: now.Add(-2 * time.Second)}
	answered := client{phase: closing, hasSent: true, lastByte: now}
	for name, order := range map[string][]client{
		"one address":                {of("10.0.0.1", answered), of("10.0.0.1", silentLonger), of("10.0.0.1", silent), of("10.0.0.1", idle), of("10.0.0.1", busy)},
		"two busy before one silent": {of("10.0.0.1", idle), of("10.0.0.2", silent), of("10.0.0.1", busy)},
		"as many each":               {of("10.0.0.1", answered), of("10.0.0.2", silent), of("10.0.0.2", idle), of("10.0.0.1", busy)},
		"mapped":                     {of("::ffff:10.0.0.1", idle), of("10.0.0.2", silent), of("10.0.0.1", busy)},
		"many addresses of one /64":  {of("2001:db8::1", idle), of("2001:db8:0:1::1", silent), of("2001:db8::2", busy)},
		"within a /64":               {of("2001:db8::1", idle), of("2001:db8::2", silent), of("2001:db8::1", busy)},
	} {
		t.Run(name, func(t *testing.T) {
			l := open(t, loopbackOnly())
			for i, c := range order {
				c.slot = len(order) - 1 - i
				c.conn = noSocket
				c.target = noSocket
				l.clients[c.slot] = c
			}
			for i := range order {
				c := &l.clients[len(order)-1-i]
				if c.phase == free || !l.evictOne() || c.phase != free {
					t.Fatalf("client %d was not reset in its turn", i)
				}
			}
			if l.evictOne() {
				t.Error("evictOne reports a client, want none")
			}
		})
	}
	l := open(t, loopbackOnly())
	only := &l.clients[3]
	only.phase = reading
	if c := victim(l.clients[:], only); c != nil {
		t.Error("victim returns the client to keep")
	}
	only.clear()
}

// hostile and checker are two peers on loopback.
const hostile, checker = "127.0.0.2", "127.0.0.3"

func dialer(from string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: testutil.Patience}
}

func dialFrom(t testing.TB, from, addr string) *net.TCPConn {
	t.Helper()
	c, err := dialer(from).Dial("tcp", addr)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(testutil.Patience))
	return c.(*net.TCPConn)
}

// TestSlowCheckStays tests that a request in progress and a silent connection outlive
// any number of later and busier connections of another peer, whether the other peer's
// connections displace each other or are reset at once.
func TestSlowCheckStays(t *testing.T) {
	for name, protection := range map[string]time.Duration{"displaced": 0, "reset": time.Hour} {
		t.Run(name, func(t *testing.T) {
			a, at := app(t, "127.0.0.1:0")
			l := open(t, loopback(at))
			l.timeouts.protection, l.timeouts.setup = protection, time.Hour
			go l.Serve()
			check := dialFrom(t, checker, l.addr())
			server := accept(t, a)
			transfer(t, check, server, "GET")
			silent := dialFrom(t, checker, l.addr())
			silentServer := accept(t, a)
			for i := range 5 * maxClients {
				if i < maxClients-2 || protection == 0 {
					transfer(t, dialFrom(t, hostile, l.addr()), accept(t, a), "G")
				} else if c, err := dialer(hostile).Dial("tcp", l.addr()); err == nil {
					wantReset(t, c)
					c.Close()
				} else if !errors.Is(err, syscall.ECONNRESET) {
					t.Error(err)
				}
			}
			transfer(t, server, check, "answer")
			transfer(t, silent, silentServer, "GET")
		})
	}
}

// TestProtection tests that a request in progress is reset for a newcomer of its own
// network only when its protection has passed.
func TestProtection(t *testing.T) {
	l := open(t, loopbackOnly())
	admitted := func(n int) []*net.TCPConn {
		t.Helper()
		var conns []*net.TCPConn
		for range n {
			c := dialFrom(t, checker, l.addr())
			io.WriteString(c, "GET")
			conns = append(conns, c)
		}
		opens := l.Opens() + uint64(n)
		pollUntil(t, l, "all clients are accepted", func() bool { return l.Opens() == opens })
		return conns
	}
	first := admitted(maxClients)
	wantReset(t, admitted(1)[0])
	l.timeouts.protection = 0
	admitted(1)
	wantReset(t, first[0])
}

// wantReset wants a reset before any byte.
func wantReset(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetDeadline(time.Now().Add(testutil.Patience))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("Read = %v, want a reset", err)
	}
}

// TestFloodSparesTarget tests that silent clients are not connected to the target while
// more connections wait to be accepted.
func TestFloodSparesTarget(t *testing.T) {
	_, at := app(t, "127.0.0.1:0")
	l := open(t, loopback(at))
	for range acceptBurst {
		dialFrom(t, hostile, l.addr())
	}
	check := dialFrom(t, checker, l.addr())
	io.WriteString(check, "GET")
	for range acceptBurst {
		dialFrom(t, hostile, l.addr())
	}
	l.pollOnce()
	if n := l.connected(); n != 0 {
		t.Errorf("%d silent clients are connected to the target, want none", n)
	}
	l.pollOnce()
	if n := l.connected(); n != 1 {
		t.Errorf("%d clients are connected to the target, want 1, the check", n)
	}
	pollUntil(t, l, "all clients are connected to the target", func() bool { return l.connected() == maxClients })
}

// connected returns how many clients have a socket to the target.
func (l *Listener) connected() (n int) {
	for c := range l.active() {
		if c.target.fd >= 0 {
			n++
		}
	}
	return n
}

// TestOnePeerFailsNoOther tests that the checks of one peer succeed while another peer
// misuses connections.
func TestOnePeerFailsNoOther(t *testing.T) {
	request := "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	write := func(text string) func(c *net.TCPConn) {
		return func(c *net.TCPConn) { io.WriteString(c, text) }
	}
	misuses := map[string]func(c *net.TCPConn){
		"silent":     func(*net.TCPConn) {},
		"one byte":   write("G"),
		"keep-alive": write(request),
		"half-close": func(c *net.TCPConn) { io.WriteString(c, "G"); c.CloseWrite() },
		"close":      func(c *net.TCPConn) { c.Close() },
		"reset":      func(c *net.TCPConn) { io.WriteString(c, "G"); c.SetLinger(0); c.Close() },
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
				l := serve(t, loopback(target))
				stop := harass(t, l.addr(), do)
				defer stop()
				c := &http.Client{Timeout: testutil.Patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialer(checker).DialContext}}
				for i := range 50 {
					if status, _, err := check(c, l.url()); status != 200 {
						t.Fatalf("check %d: %d, %v", i, status, err)
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

// harass makes connections from the hostile peer in four goroutines, until stop is
// called. Up to 4 * 64 connections are open at a time. harass returns when more
// connections were made than the listener has slots.
func harass(t *testing.T, addr string, do func(c *net.TCPConn)) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan struct{}, 1)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			var kept [64]net.Conn
			for i := 0; ctx.Err() == nil && i < 100_000; i++ {
				if i == maxClients {
					begun <- struct{}{}
				}
				c, err := dialer(hostile).DialContext(ctx, "tcp", addr)
				if err != nil {
					continue
				}
				do(c.(*net.TCPConn))
				if last := kept[i%len(kept)]; last != nil {
					last.Close()
				}
				kept[i%len(kept)] = c
			}
			for _, c := range kept {
				if c != nil {
					c.Close()
				}
			}
		})
	}
	for range 4 {
		<-begun
	}
	return func() { cancel(); all.Wait() }
}

// TestBurst tests that the clients of a burst of exactly acceptBurst connections are
// connected to the target at once. Silent clients would cause no further event.
func TestBurst(t *testing.T) {
	_, at := app(t, "127.0.0.1:0")
	l := open(t, loopback(at))
	for range acceptBurst {
		dial(t, l.addr())
	}
	l.interrupt()
	l.pollOnce()
	if n := l.count(); n == 0 {
		t.Fatal("no clients")
	}
	for c := range l.active() {
		if c.target.fd < 0 {
			t.Fatalf("client %d is not connected to the target, in phase %d", c.slot, c.phase)
		}
	}
}
