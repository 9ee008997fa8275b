package health

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"

	"github.com/lameduck-init/lameduck/shim/internal/check"
)

// TestRelayedEnds: a half-close of either end leaves the other half as it is, and a reset is relayed
// behind the bytes sent before.
func TestRelayedEnds(t *testing.T) {
	for _, clientFirst := range []bool{true, false} {
		ends := func() (first, second *net.TCPConn) {
			_, client, server := relayed(t)
			if clientFirst {
				return client, server
			}
			return server, client
		}
		first, second := ends()
		transfer(t, first, second, "the last word")
		must(t, first.CloseWrite())
		wantEnd(t, second)
		transfer(t, second, first, "one more")
		must(t, second.CloseWrite())
		wantEnd(t, first)

		first, second = ends()
		transfer(t, first, second, "hear")
		must(t, first.SetLinger(0))
		first.Close()
		wantReset(t, second)
	}
}

// TestBackpressure: both ends write until they are blocked, and then read: all bytes arrive.
func TestBackpressure(t *testing.T) {
	_, client, server := relayed(t)
	data := make([]byte, 16<<20) // more than socket buffers take
	rand.Read(data)
	sent := map[*net.TCPConn]int{}
	for _, c := range []*net.TCPConn{client, server} {
		sent[c] = fill(c, data)
		if sent[c] == len(data) {
			t.Error("the writer was not blocked: the test shows nothing")
		}
		c.CloseWrite()
	}
	for from, to := range map[*net.TCPConn]*net.TCPConn{client: server, server: client} {
		got, err := io.ReadAll(to)
		if err != nil || !bytes.Equal(got, data[:sent[from]]) {
			t.Errorf("received %d bytes, %v; want the %d bytes sent", len(got), err, sent[from])
		}
	}
}

// TestTargets: the target :PORT is on either loopback address; a check is reset if none accepts.
func TestTargets(t *testing.T) {
	for app, want := range map[string]string{"127.0.0.1:0": request, "[::1]:0": request, "": "connection reset by peer"} {
		t.Run(app, func(t *testing.T) {
			port := uint16(1) // nobody's
			if app != "" {
				port = echo(t, app).Port()
			}
			l := open(t, check.Spec{Listen: own.Listen, Target: netip.AddrPortFrom(netip.Addr{}, port)})
			l.start(t)
			if got := ask(t, l.addr); !strings.HasSuffix(got, want) {
				t.Errorf("the check got %q, want %q", got, want)
			}
		})
	}
}

// TestListen: on which loopback addresses a listener accepts.
func TestListen(t *testing.T) {
	app(t, "[::1]:0") // or skip
	for _, cells := range script.Rows(`
		# listen | addresses
		0.0.0.0   | 127.0.0.1
		127.0.0.1 | 127.0.0.1
		::        | 127.0.0.1 ::1
		::1       | ::1
		          | 127.0.0.1 ::1
	`) {
		addr, _ := netip.ParseAddr(cells[0])
		l := open(t, check.Spec{Listen: netip.AddrPortFrom(addr, 0)})
		var accept []string
		for _, host := range []string{"127.0.0.1", "::1"} {
			at := netip.AddrPortFrom(netip.MustParseAddr(host), l.addr.Port())
			if c, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(at)); err == nil {
				accept = append(accept, host)
				c.Close()
			}
		}
		if got := strings.Join(accept, " "); got != cells[1] {
			t.Errorf("listening on %q, clients of %s are accepted, want %s", cells[0], got, cells[1])
		}
	}
}

// TestOpenFails: the errors of Open.
func TestOpenFails(t *testing.T) {
	_, taken := app(t, "127.0.0.1:0")
	for spec, want := range map[check.Spec]string{
		{Listen: taken}: "cannot listen on " + taken.String() + ": address already in use",
		{Target: netip.MustParseAddrPort("192.0.2.1:8080")}: "cannot pass health checks to 192.0.2.1:8080: " +
			"not an address of this container; give :8080 for the port on loopback",
	} {
		if _, err := Open(spec); err == nil || err.Error() != want {
			t.Errorf("Open(%v) = %v, want %q", spec, err, want)
		}
	}
}

// TestAnswers: what clients get without a target, whatever they send.
func TestAnswers(t *testing.T) {
	l := open(t, own)
	l.start(t)
	for _, c := range []struct {
		request, want string
		ends          bool
	}{
		{request: request, want: ok},
		{request: "\r\nGET / HTTP/1.1\n\n", want: ok},
		{request: "HEAD / HTTP/1.1\r\n\r\n", want: healthy + common},
		{request: "POST / HTTP/1.1\r\n\r\n" + strings.Repeat("x", 16<<20), want: ok}, // more than buffers take
		{request: "GET /" + strings.Repeat("x", 60_000), want: ok},                   // longer than our buffer
		{request: "GET / HTTP/1.0\r\n", ends: true, want: ok},
		{request: "", ends: true}, // connects only
		{request: "\x16\x03\x01\x02"},
		{request: "\x80\x2e"},
	} {
		client := dial(t, l.addr)
		_, err := io.WriteString(client, c.request)
		must(t, err)
		if c.ends {
			client.CloseWrite()
		}
		got, err := io.ReadAll(client)
		if string(got) != c.want || err != nil && (c.want != "" || !errors.Is(err, syscall.ECONNRESET)) {
			t.Errorf("%.30q: %q, %v; want %q", c.request, got, err, c.want)
		}
	}
}

// TestProxied: Proxied returns the connections to the app, open or closed since the given time.
func TestProxied(t *testing.T) {
	begin := time.Now()
	l, client, server := relayed(t)
	transfer(t, client, server, "GET")
	conn := ProxiedConn{
		Local:  server.RemoteAddr().(*net.TCPAddr).AddrPort(),
		Target: server.LocalAddr().(*net.TCPAddr).AddrPort(),
	}
	wantProxied := func(since time.Time, want ...ProxiedConn) {
		t.Helper()
		if got := l.Proxied(nil, since); !slices.Equal(got, want) {
			t.Errorf("Proxied(%v) = %v, want %v", since, got, want)
		}
	}
	wantProxied(time.Now().Add(time.Hour), conn)
	client.CloseWrite()
	server.Close()
	testutil.Eventually(t, "the connection is closed", func() bool { return len(l.Proxied(nil, time.Now())) == 0 })
	wantProxied(begin, conn)
	if n := l.Opens(); n != 2 {
		t.Errorf("%d passive opens, want one here and one at the app", n)
	}
}

// TestProxiedConns: the list is bounded, and drops the oldest connections.
func TestProxiedConns(t *testing.T) {
	p := proxiedConns{open: map[int]ProxiedConn{}}
	conn := func(port int) ProxiedConn {
		return ProxiedConn{Local: netip.AddrPortFrom(netip.IPv6Loopback(), uint16(port))}
	}
	for port := range 3 * maxClosed {
		p.open[0] = conn(port)
		p.markClosed(0)
	}
	got := p.Proxied(nil, time.Time{})
	if len(got) != maxClosed || got[0] != conn(2*maxClosed) {
		t.Errorf("%d connections are listed, want the latest %d", len(got), maxClosed)
	}
}
