package health

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
)

// TestHTTP: requests reach the app, one a connection or many.
func TestHTTP(t *testing.T) {
	l := serve(t, loopback(web(t, "127.0.0.1:0")))
	kept := &http.Client{Timeout: timeout, Transport: &http.Transport{}}
	defer kept.CloseIdleConnections()
	for range 20 {
		wantCheck(t, fresh(), l.url(), 200, "fine /health")
		wantCheck(t, kept, l.url(), 200, "fine /health")
	}
}

// TestKeepAlive: one connection of the client is one to the app.
func TestKeepAlive(t *testing.T) {
	_, client, server := through(t)
	for i := range 100 {
		say(t, client, server, fmt.Sprintf("request %d", i))
		say(t, server, client, fmt.Sprintf("answer %d", i))
	}
}

// TestTLS: it is passed through unread; HTTP/2, too.
func TestTLS(t *testing.T) {
	app := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s by TLS", r.Proto)
	}))
	app.EnableHTTP2 = true
	app.StartTLS()
	defer app.Close()
	l := serve(t, loopback(app.Listener.Addr().(*net.TCPAddr).AddrPort()))
	c := app.Client()
	c.Timeout = timeout
	for range 5 {
		wantCheck(t, c, "https://"+l.addr(), 200, "HTTP/2.0 by TLS")
	}
}

// TestServerFirst: an app may speak before the client does.
func TestServerFirst(t *testing.T) {
	_, client, server := through(t)
	say(t, server, client, "220 ready")
	say(t, client, server, "QUIT")
}

// TestHalfClose: either side may end first, and still hear the other.
func TestHalfClose(t *testing.T) {
	for _, clientFirst := range []bool{true, false} {
		_, first, second := through(t)
		if !clientFirst {
			first, second = second, first
		}
		say(t, first, second, "the last word")
		must(t, first.CloseWrite())
		if rest, err := io.ReadAll(second); err != nil || len(rest) > 0 {
			t.Fatalf("client first: %v: %q, %v", clientFirst, rest, err)
		}
		say(t, second, first, "one more")
		must(t, second.CloseWrite())
		if rest, err := io.ReadAll(first); err != nil || len(rest) > 0 {
			t.Fatalf("client first: %v: %q, %v", clientFirst, rest, err)
		}
	}
}

// TestReset: a reset is passed on as one, behind what was said before it.
func TestReset(t *testing.T) {
	for _, clientFirst := range []bool{true, false} {
		_, first, second := through(t)
		if !clientFirst {
			first, second = second, first
		}
		say(t, first, second, "hear")
		must(t, first.SetLinger(0))
		first.Close()
		if _, err := second.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("client first: %v: %v", clientFirst, err)
		}
	}
}

// TestBackpressure: much goes both ways at once, and nobody reads until both
// writers are stuck; all of it arrives.
func TestBackpressure(t *testing.T) {
	const size, piece = 16 << 20, 64 << 10 // more than socket buffers take
	_, client, server := through(t)
	data := make([]byte, size)
	rand.Read(data)
	var written atomic.Int64
	var all sync.WaitGroup
	for _, end := range []*net.TCPConn{client, server} {
		all.Go(func() {
			for i := 0; i < size; i += piece {
				if _, err := end.Write(data[i : i+piece]); err != nil {
					t.Error(err)
					return
				}
				written.Add(piece)
			}
			end.CloseWrite()
		})
	}
	last, same := int64(0), 0
	wait(t, "both to be stuck", func() bool {
		if now := written.Load(); now != last {
			last, same = now, 0
		}
		same++
		return same > 100
	})
	if last == 2*size {
		t.Error("all went at once: nothing was tried")
	}
	for _, end := range []*net.TCPConn{client, server} {
		all.Go(func() {
			got, err := io.ReadAll(iotest.HalfReader(end))
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes came of %d, or others: %v", len(got), size, err)
			}
		})
	}
	all.Wait()
}

// TestNoApp: where the app refuses, so do we; and no longer when it is up.
func TestNoApp(t *testing.T) {
	a, at := app(t, "127.0.0.1:0")
	a.Close()
	l := serve(t, loopback(at))
	if status, _, err := check(fresh(), l.url()); err == nil {
		t.Errorf("%d without an app", status)
	}
	again, err := net.Listen("tcp", at.String())
	if err != nil {
		t.Skip("the port was taken: ", err)
	}
	s := &http.Server{Handler: http.NotFoundHandler()}
	go s.Serve(again)
	defer s.Close()
	wantCheck(t, fresh(), l.url(), 404, "404 page not found\n")
}

// TestEitherLoopback: ":PORT" is the app's, wherever on loopback it listens.
func TestEitherLoopback(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(addr, func(t *testing.T) {
			at := web(t, addr)
			l := serve(t, loopback(netip.AddrPortFrom(netip.Addr{}, at.Port())))
			wantCheck(t, fresh(), l.url(), 200, "fine /health")
		})
	}
}

// TestListen: on all addresses, on IPv4 alone, on IPv6.
func TestListen(t *testing.T) {
	six, four := app6(t), "127.0.0.1"
	for _, c := range []struct {
		listen string
		served map[string]bool
	}{
		{"", map[string]bool{four: true, "[::1]": six}},
		{"::", map[string]bool{four: true, "[::1]": six}},
		{"0.0.0.0", map[string]bool{four: true, "[::1]": false}},
		{"127.0.0.1", map[string]bool{four: true, "[::1]": false}},
		{"::1", map[string]bool{four: false, "[::1]": six}},
	} {
		if !six && (c.listen == "::" || c.listen == "::1") {
			continue
		}
		var addr netip.Addr
		if c.listen != "" {
			addr = netip.MustParseAddr(c.listen)
		}
		l := serve(t, Spec{Listen: netip.AddrPortFrom(addr, 0)})
		for host, want := range c.served {
			status, _, err := check(fresh(), fmt.Sprintf("http://%s:%d", host, l.Port()))
			if got := status == 200; got != want {
				t.Errorf("on %q, asked at %s: %d, %v", c.listen, host, status, err)
			}
		}
	}
}

// app6 reports whether there is IPv6.
func app6(t *testing.T) bool {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Log("no IPv6: ", err)
		return false
	}
	l.Close()
	return true
}

// TestIPv6: from end to end.
func TestIPv6(t *testing.T) {
	at := web(t, "[::1]:0")
	l := serve(t, Spec{Listen: netip.MustParseAddrPort("[::1]:0"), Target: at})
	wantCheck(t, fresh(), fmt.Sprintf("http://[::1]:%d/six", l.Port()), 200, "fine /six")
}
