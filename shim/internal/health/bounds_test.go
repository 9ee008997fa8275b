package health

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// soon is how soon a check is answered beside a crowd.
const soon = time.Second

// TestSilentCrowd: 500 clients that connect and say nothing do not keep a check from
// being answered, whether it comes among them or behind.
func TestSilentCrowd(t *testing.T) {
	for name, target := range map[string]netip.AddrPort{"passed": web(t, "127.0.0.1:0"), "own": {}} {
		t.Run(name, func(t *testing.T) {
			l := serve(t, loopback(target))
			worst := time.Duration(0)
			for i := range 500 {
				dial(t, l.addr())
				if i%50 == 49 {
					start := time.Now()
					if status, _, err := check(fresh(), l.url()); status != 200 {
						t.Errorf("behind %d: %d, %v", i+1, status, err)
					}
					worst = max(worst, time.Since(start))
				}
			}
			if t.Logf("at worst %v", worst); worst > soon {
				t.Errorf("a check took %v", worst)
			}
		})
	}
}

// TestBusyCheckStays: a check that the app works on outlives the silent.
func TestBusyCheckStays(t *testing.T) {
	l, client, server := through(t)
	say(t, client, server, "GET")
	for range 5 * maxClients {
		dial(t, l.addr())
	}
	say(t, server, client, "answer")
}

// rounds serves by hand until ok, without ever waiting.
func rounds(t *testing.T, l *Listener, what string, ok func() bool) {
	t.Helper()
	wait(t, what, func() bool {
		l.interrupt()
		l.pollOnce()
		return ok()
	})
}

// count returns how many clients there are.
func (l *Listener) count() (n int) {
	for i := range l.clients {
		if l.clients[i].phase != free {
			n++
		}
	}
	return n
}

// TestIdle: without clients there is no deadline, and nothing to look at but who may
// come.
func TestIdle(t *testing.T) {
	l := open(t, loopbackOnly())
	look := func(clients, polled int, deadline bool) {
		t.Helper()
		rounds(t, l, fmt.Sprint(clients, " clients"), func() bool { return l.count() == clients })
		if l.buildPollSet(); len(l.pollSet) != polled || l.timeout() < 0 == deadline {
			t.Errorf("with %d clients it looks at %v for %d ms", clients, l.pollSet, l.timeout())
		}
	}
	look(0, 2, false)
	c := dial(t, l.addr())
	look(1, 3, true)
	c.Close()
	look(0, 2, false)
}

// TestScarce: where no descriptor is free, it waits rather than spins.
func TestScarce(t *testing.T) {
	l := open(t, loopbackOnly())
	l.timeouts.acceptRetry = time.Hour
	c := dial(t, l.addr())
	restore := exhaust(t)
	rounds(t, l, "accept to fail", func() bool { return !l.pausedUntil.IsZero() })
	l.buildPollSet()
	if l.listening.pollIndex != -1 || l.timeout() < 1000 || len(l.pollSet) != 1 {
		t.Errorf("it looks at %v for %d ms", l.pollSet, l.timeout())
	}
	restore()
	l.pausedUntil = time.Time{}
	io.WriteString(c, "GET / HTTP/1.1\r\n\r\n")
	rounds(t, l, "an answer", func() bool { return l.clients[0].phase == closing })
	if status, _ := response(t, c, "GET"); status != 200 {
		t.Error(status)
	}
}

// TestScarceButOne: where no descriptor is free, a silent client is given up for the
// next one, and that one for nobody.
func TestScarceButOne(t *testing.T) {
	l := open(t, loopbackOnly())
	silent := dial(t, l.addr())
	rounds(t, l, "a client", func() bool { return l.count() == 1 })
	began := l.clients[0].deadline
	next := dial(t, l.addr())
	restore := exhaust(t)
	rounds(t, l, "another in its place", func() bool { return l.count() == 1 && l.clients[0].deadline != began })
	for range 10 {
		l.interrupt()
		l.pollOnce()
	}
	restore()
	io.WriteString(next, "GET / HTTP/1.1\r\n\r\n")
	rounds(t, l, "an answer", func() bool { return l.clients[0].phase == closing })
	if status, _ := response(t, next, "GET"); status != 200 {
		t.Error(status)
	}
	if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the silent one: %v", err)
	}
}

// TestScarceTarget: where there is a descriptor for a client, and none for the
// connection to the app, a silent client is given up for that.
func TestScarceTarget(t *testing.T) {
	a, at := app(t, "127.0.0.1:0") // it does not accept yet, which would take one
	l := open(t, loopback(at))
	silent := dial(t, l.addr())
	rounds(t, l, "a client", func() bool { return l.clients[0].phase == relaying })
	next := dial(t, l.addr())
	spare, err := unix.Dup(2)
	must(t, err)
	restore := exhaust(t)
	unix.Close(spare)
	rounds(t, l, "another client", func() bool { return l.clients[0].phase == free && l.clients[1].phase == relaying })
	restore()
	accept(t, a).Close() // the silent one's
	server := accept(t, a)
	io.WriteString(next, "GET")
	rounds(t, l, "the request", func() bool { return l.clients[1].hasSent && l.clients[1].up.isEmpty() })
	hear(t, server, "GET")
	if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the silent one: %v", err)
	}
}

// exhaust lets this process open nothing more.
func exhaust(t *testing.T) (restore func()) {
	t.Helper()
	var was unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	next, err := unix.Dup(2)
	must(t, err)
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next + 1), Max: was.Max}))
	taken := []int{next}
	for err == nil { // gaps below
		if next, err = unix.Dup(2); err == nil {
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

// TestOutgoing: each connection that the app saw is known as ours, while it is open
// and for whoever asks since then, and no other is.
func TestOutgoing(t *testing.T) {
	seen := make(chan netip.AddrPort, 100)
	at := webOf(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		seen <- netip.MustParseAddrPort(r.RemoteAddr)
	})
	l := serve(t, loopback(at))
	start := time.Now()
	var want []netip.AddrPort
	for range 50 {
		wantCheck(t, fresh(), l.url(), 200, "")
		local := <-seen
		if got := l.Proxied(nil, start); !slices.Contains(got, ProxiedConn{Local: local, Target: at}) {
			t.Fatalf("%v is not in %v", local, got)
		}
		want = append(want, local)
	}
	wantCheck(t, fresh(), fmt.Sprintf("http://%v/", at), 200, "")
	if direct := <-seen; slices.Contains(want, direct) {
		t.Skip("the kernel gave a port out again")
	} else if slices.Contains(l.Proxied(nil, start), ProxiedConn{Local: direct, Target: at}) {
		t.Error("a direct connection is taken for ours")
	}
	wait(t, "all to be gone", func() bool { return len(l.Proxied(nil, time.Now())) == 0 })
	if got := l.Proxied(nil, start); len(got) != len(want) {
		t.Errorf("%d are known, want %d", len(got), len(want))
	}
	own := serve(t, loopbackOnly())
	wantCheck(t, fresh(), own.url(), 200, "ok\n")
	if got := own.Proxied(nil, start); len(got) != 0 {
		t.Errorf("without a target: %v", got)
	}
}

// TestLedger: it is bounded, and the oldest go first.
func TestLedger(t *testing.T) {
	var g proxiedConns
	start := time.Now()
	made := func(i int) ProxiedConn {
		return ProxiedConn{Local: netip.AddrPortFrom(netip.IPv6Loopback(), uint16(i+1))}
	}
	for i := range 3 * maxClosed {
		must(t, g.add(i%clientSlots, func() (ProxiedConn, error) { return made(i), nil }))
		g.markClosed(i%clientSlots, start.Add(time.Duration(i)))
		g.markClosed(i%clientSlots, start.Add(time.Hour)) // nothing is open
	}
	got := g.since(nil, start)
	if len(got) != maxClosed || slices.Contains(got, made(0)) || !slices.Contains(got, made(3*maxClosed-1)) {
		t.Errorf("%d are known", len(got))
	}
	if got := g.since(nil, start.Add(3*maxClosed-10)); len(got) != 10 {
		t.Errorf("%d are known of the last 10", len(got))
	}
	g.add(3, func() (ProxiedConn, error) { return made(1), io.EOF })
	g.add(4, func() (ProxiedConn, error) { return made(2), nil })
	if got := g.since(nil, start.Add(time.Hour)); !slices.Equal(got, []ProxiedConn{made(2)}) {
		t.Errorf("open: %v", got)
	}
}

// TestInode: the listening socket is the one with our port.
func TestInode(t *testing.T) {
	l := open(t, loopbackOnly())
	var at unix.Stat_t
	must(t, unix.Fstat(l.listening.fd, &at))
	name, err := localAddress(l.listening.fd)
	if uint64(l.Inode()) != at.Ino || l.Port() != name.Port() || l.Port() == 0 || err != nil {
		t.Errorf("inode %d, port %d; the kernel says %d, %v", l.Inode(), l.Port(), at.Ino, name)
	}
}
