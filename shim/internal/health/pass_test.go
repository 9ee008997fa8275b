package health

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"

	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestRelayedEnds: a half-close of either end leaves the other half as it is, and a reset is relayed
// behind the bytes sent before.
func TestRelayedEnds(t *testing.T) {
	for i := range 4 {
		_, first, second := relayed(t)
		if i%2 == 1 {
			first, second = second, first
		}
		transfer(t, first, second, "the last word")
		if i >= 2 {
			first.SetLinger(0)
			first.Close()
			wantReset(t, second)
			continue
		}
		first.CloseWrite()
		wantEnd(t, second)
		transfer(t, second, first, "one more")
		second.CloseWrite()
		wantEnd(t, first)
	}
}

// TestBackpressure: both ends write until they are blocked, and then read: all bytes arrive.
func TestBackpressure(t *testing.T) {
	_, client, server := relayed(t)
	data := make([]byte, 16<<20) // more than socket buffers take
	rand.Read(data)
	sent, sentBack := fill(client, data), fill(server, data)
	if max(sent, sentBack) == len(data) {
		t.Error("no writer was blocked: the test shows nothing")
	}
	client.CloseWrite()
	server.CloseWrite()
	client.SetDeadline(time.Time{}) // megabytes take long on a busy machine
	server.SetDeadline(time.Time{})
	got, err := io.ReadAll(server)
	gotBack, errBack := io.ReadAll(client)
	if !bytes.Equal(got, data[:sent]) || !bytes.Equal(gotBack, data[:sentBack]) {
		t.Errorf("received %d and %d bytes, %v, %v; want the %d and %d bytes sent",
			len(got), len(gotBack), err, errBack, sent, sentBack)
	}
}

// TestTargets: the target :PORT is on either loopback address; a check is reset if none accepts.
func TestTargets(t *testing.T) {
	listenAt(t, "[::1]:0") // or skip
	wantAnswer := func(port uint16, want string) {
		t.Helper()
		l := open(t, to(netip.AddrPortFrom(netip.Addr{}, port)))
		l.start(t)
		if got := ask(t, l.addr); !strings.HasSuffix(got, want) {
			t.Errorf("the check got %q, want %q", got, want)
		}
	}
	wantAnswer(1, "connection reset by peer") // nobody's port
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		target := open(t, check.Spec{Listen: netip.MustParseAddrPort(addr)})
		target.start(t)
		wantAnswer(target.addr.Port(), ok)
	}
}

// TestListen: on which loopback addresses a listener accepts.
func TestListen(t *testing.T) {
	listenAt(t, "[::1]:0") // or skip
	for _, cells := range tables.Rows(`
		# listen | refuses clients of 127.0.0.1 | of ::1
		          | false | false
		::        | false | false
		0.0.0.0   | false | true
		127.0.0.1 | false | true
		::1       | true  | false
	`) {
		addr, _ := netip.ParseAddr(cells[0])
		l := open(t, check.Spec{Listen: netip.AddrPortFrom(addr, 0)})
		for i, host := range []string{"127.0.0.1", "::1"} {
			at := netip.AddrPortFrom(netip.MustParseAddr(host), l.addr.Port())
			if got := fmt.Sprint(refuses(at)); got != cells[i+1] {
				t.Errorf("listening on %q, refuses clients of %s: %s, want %s", cells[0], host, got, cells[i+1])
			}
		}
	}
}

// TestOpenFails: a target of another container.
func TestOpenFails(t *testing.T) {
	_, err := Open(to(netip.MustParseAddrPort("192.0.2.1:8080")), NewConns())
	const want = "cannot pass health checks to 192.0.2.1:8080: not an address of this container; " +
		"give :8080 for the port on loopback"
	if fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestAnswers: what clients get without a target, whatever they send.
func TestAnswers(t *testing.T) {
	l := open(t, own)
	l.start(t)
	for request, want := range map[string]string{
		request:                               ok,
		"\r\nGET / HTTP/1.1\n\n":              ok,
		"HEAD / HTTP/1.1\r\n\r\n":             healthy + common,
		"GET / HTTP/1.0\r\n" + end:            ok,
		end:                                   "", // connects only
		"\x16\x03\x01\x02":                    "",
		"\x80\x2e":                            "",
		"GET /" + strings.Repeat("x", 60_000): ok, // longer than our buffer
		"POST / HTTP/1.1\r\n\r\n" + strings.Repeat("x", 8<<20): ok, // longer than all buffers
	} {
		c := dial(t, l.addr)
		text, ends := strings.CutSuffix(request, end)
		if _, err := io.WriteString(c, text); err != nil {
			t.Errorf("%.30q: %v", request, err)
		}
		if ends {
			c.CloseWrite()
		}
		got, err := io.ReadAll(c)
		if string(got) != want || err != nil && (want != "" || !errors.Is(err, syscall.ECONNRESET)) {
			t.Errorf("%.30q: %q, %v; want %q", request, got, err, want)
		}
	}
}

// end stands for the end of the stream.
const end = "END"

// TestSince: Since returns the connections to the app, open or closed since the given time.
func TestSince(t *testing.T) {
	begin := time.Now()
	l, client, server := relayed(t)
	want := fmt.Sprintf("[{%v %v}]", server.RemoteAddr(), server.LocalAddr())
	open := fmt.Sprint(l.conns.Since(nil, time.Now().Add(time.Hour)))
	client.CloseWrite()
	server.Close()
	testutil.Eventually(t, "the connection is closed", func() bool { return len(l.conns.Since(nil, time.Now())) == 0 })
	if closed := fmt.Sprint(l.conns.Since(nil, begin)); open != want || closed != want {
		t.Errorf("Since returns %s, and later %s; want %s", open, closed, want)
	}
	if n := l.conns.Opens(); n != 2 {
		t.Errorf("%d passive opens, want one here and one at the app", n)
	}
}

// TestConns: the list is bounded, and drops the oldest connections.
func TestConns(t *testing.T) {
	p := NewConns()
	conn := func(port int) Conn {
		return Conn{Local: netip.AddrPortFrom(netip.IPv6Loopback(), uint16(port))}
	}
	for port := range 3 * maxClosed {
		p.open[0] = conn(port)
		p.noteClose(0)
	}
	got := p.Since(nil, time.Time{})
	if len(got) != maxClosed || got[0] != conn(2*maxClosed) {
		t.Errorf("%d connections are listed, want the latest %d", len(got), maxClosed)
	}
}
