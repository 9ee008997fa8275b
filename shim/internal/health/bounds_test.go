package health

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// maxLatency is the limit of a check's duration beside many clients.
const maxLatency = time.Second

// TestSilentCrowd tests checks among 500 clients that connect and send no byte: the
// answers come soon.
func TestSilentCrowd(t *testing.T) {
	for name, target := range map[string]netip.AddrPort{"relayed": web(t, "127.0.0.1:0"), "own": {}} {
		t.Run(name, func(t *testing.T) {
			l := serve(t, loopback(target))
			worst := time.Duration(0)
			for i := range 500 {
				dial(t, l.addr())
				if i%50 == 49 {
					start := time.Now()
					if status, _, err := check(newClient(), l.url()); status != 200 {
						t.Errorf("check after %d clients: %d, %v", i+1, status, err)
					}
					worst = max(worst, time.Since(start))
				}
			}
			if worst > maxLatency {
				t.Errorf("a check took %v, want %v at most", worst, maxLatency)
			}
		})
	}
}

// TestBusyCheckStays tests that a request in progress outlives silent clients.
func TestBusyCheckStays(t *testing.T) {
	l, client, server := relayed(t)
	transfer(t, client, server, "GET")
	for range 5 * maxClients {
		dial(t, l.addr())
	}
	transfer(t, server, client, "answer")
}

// pollUntil serves without blocking until ok returns true.
func pollUntil(t *testing.T, l *Listener, what string, ok func() bool) {
	t.Helper()
	testutil.Eventually(t, what, func() bool {
		l.interrupt()
		l.pollOnce()
		return ok()
	})
}

// count returns the number of clients.
func (l *Listener) count() (n int) {
	for range l.active() {
		n++
	}
	return n
}

// TestIdle tests that without clients poll(2) has no timeout, and waits for the eventfd
// and the listening socket alone.
func TestIdle(t *testing.T) {
	l := open(t, loopbackOnly())
	wantPoll := func(clients, polled int, deadline bool) {
		t.Helper()
		pollUntil(t, l, fmt.Sprint(clients, " clients"), func() bool { return l.count() == clients })
		l.buildPollSet()
		if len(l.pollSet) != polled || l.timeout() < 0 == deadline {
			t.Errorf("with %d clients the poll set is %v, the timeout %d ms", clients, l.pollSet, l.timeout())
		}
	}
	wantPoll(0, 2, false)
	c := dial(t, l.addr())
	wantPoll(1, 3, true)
	c.Close()
	wantPoll(0, 2, false)
}

// TestScarce tests that accepting pauses while no descriptor is free.
func TestScarce(t *testing.T) {
	l := open(t, loopbackOnly())
	l.timeouts.acceptRetry = time.Hour
	c := dial(t, l.addr())
	restore := exhaust(t)
	pollUntil(t, l, "accepting is paused", func() bool { return !l.pausedUntil.IsZero() })
	l.buildPollSet()
	if l.listening.pollIndex != -1 || l.timeout() < 1000 || len(l.pollSet) != 1 {
		t.Errorf("the poll set is %v, the timeout %d ms; want only the eventfd, a second or more", l.pollSet, l.timeout())
	}
	restore()
	l.pausedUntil = time.Time{}
	io.WriteString(c, "GET / HTTP/1.1\r\n\r\n")
	pollUntil(t, l, "the answer is sent", func() bool { return l.clients[0].phase == closing })
	wantStatus(t, c, 200)
}

// TestScarceButOne tests that without a free descriptor a silent client is reset for
// the next client, and the next client stays.
func TestScarceButOne(t *testing.T) {
	l := open(t, loopbackOnly())
	silent := dial(t, l.addr())
	pollUntil(t, l, "a client is admitted", func() bool { return l.count() == 1 })
	began := l.clients[0].deadline
	next := dial(t, l.addr())
	restore := exhaust(t)
	pollUntil(t, l, "the next client has the slot", func() bool { return l.count() == 1 && l.clients[0].deadline != began })
	for range 10 {
		l.interrupt()
		l.pollOnce()
	}
	restore()
	io.WriteString(next, "GET / HTTP/1.1\r\n\r\n")
	pollUntil(t, l, "the answer is sent", func() bool { return l.clients[0].phase == closing })
	wantStatus(t, next, 200)
	wantReset(t, silent)
}

// TestScarceTarget tests that a silent client is reset if the descriptors suffice for a
// new client but not for its connection to the app.
func TestScarceTarget(t *testing.T) {
	a, at := app(t, "127.0.0.1:0") // does not accept yet: accepting takes a descriptor
	l := open(t, loopback(at))
	silent := dial(t, l.addr())
	pollUntil(t, l, "a client is relayed", func() bool { return l.clients[0].phase == relaying })
	next := dial(t, l.addr())
	spare, err := unix.Dup(2)
	must(t, err)
	restore := exhaust(t)
	unix.Close(spare)
	pollUntil(t, l, "the next client is relayed", func() bool { return l.clients[0].phase == free && l.clients[1].phase == relaying })
	restore()
	accept(t, a).Close() // of the silent client
	server := accept(t, a)
	io.WriteString(next, "GET")
	pollUntil(t, l, "the request is relayed", func() bool { return l.clients[1].hasSent && l.clients[1].up.isEmpty() })
	expect(t, server, "GET")
	wantReset(t, silent)
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
// since the given time, and no other connection.
func TestProxied(t *testing.T) {
	seen := make(chan netip.AddrPort, 100)
	at := webOf(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		seen <- netip.MustParseAddrPort(r.RemoteAddr)
	})
	l := serve(t, loopback(at))
	start := time.Now()
	var want []netip.AddrPort
	for range 50 {
		wantCheck(t, newClient(), l.url(), 200, "")
		local := <-seen
		if got := l.Proxied(nil, start); !slices.Contains(got, ProxiedConn{Local: local, Target: at}) {
			t.Fatalf("Proxied = %v, without %v", got, local)
		}
		want = append(want, local)
	}
	wantCheck(t, newClient(), fmt.Sprintf("http://%v/", at), 200, "")
	direct := <-seen
	if slices.Contains(want, direct) {
		t.Skip("the kernel reused a port")
	}
	if slices.Contains(l.Proxied(nil, start), ProxiedConn{Local: direct, Target: at}) {
		t.Error("Proxied returns a direct connection")
	}
	testutil.Eventually(t, "all connections are closed", func() bool { return len(l.Proxied(nil, time.Now())) == 0 })
	if got := l.Proxied(nil, start); len(got) != len(want) {
		t.Errorf("Proxied returns %d connections, want %d", len(got), len(want))
	}
	own := serve(t, loopbackOnly())
	wantCheck(t, newClient(), own.url(), 200, "ok\n")
	if got := own.Proxied(nil, start); len(got) != 0 {
		t.Errorf("Proxied without a target = %v, want none", got)
	}
}

// TestProxiedConns tests that the list is bounded, and drops the oldest connections.
func TestProxiedConns(t *testing.T) {
	var p proxiedConns
	start := time.Now()
	conn := func(i int) ProxiedConn {
		return ProxiedConn{Local: netip.AddrPortFrom(netip.IPv6Loopback(), uint16(i+1))}
	}
	for i := range 3 * maxClosed {
		must(t, p.add(i%clientSlots, func() (ProxiedConn, error) { return conn(i), nil }))
		p.markClosed(i%clientSlots, start.Add(time.Duration(i)))
		p.markClosed(i%clientSlots, start.Add(time.Hour)) // already closed
	}
	got := p.since(nil, start)
	if len(got) != maxClosed || slices.Contains(got, conn(0)) || !slices.Contains(got, conn(3*maxClosed-1)) {
		t.Errorf("%d connections are listed, want the latest %d", len(got), maxClosed)
	}
	if got := p.since(nil, start.Add(3*maxClosed-10)); len(got) != 10 {
		t.Errorf("%d connections are listed since the last 10, want 10", len(got))
	}
	p.add(3, func() (ProxiedConn, error) { return conn(1), io.EOF })
	p.add(4, func() (ProxiedConn, error) { return conn(2), nil })
	if got := p.since(nil, start.Add(time.Hour)); !slices.Equal(got, []ProxiedConn{conn(2)}) {
		t.Errorf("listed %v, want the open connection alone", got)
	}
}

// TestInode tests Inode and Port.
func TestInode(t *testing.T) {
	l := open(t, loopbackOnly())
	var at unix.Stat_t
	must(t, unix.Fstat(l.listening.fd, &at))
	name, err := localAddress(l.listening.fd)
	if uint64(l.Inode()) != at.Ino || l.Port() != name.Port() || l.Port() == 0 || err != nil {
		t.Errorf("inode %d, port %d; want %d, %v", l.Inode(), l.Port(), at.Ino, name)
	}
}
