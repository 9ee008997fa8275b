package health

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"

	"github.com/lameduck-init/lameduck/shim/internal/check"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// loopback returns a spec whose port the kernel chooses.
func loopback(target netip.AddrPort) check.Spec {
	return check.Spec{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Target: target}
}

// listenerAt is a Listener and its port.
type listenerAt struct {
	*Listener
	port uint16
}

// open returns a listener that does not serve yet.
func open(t testing.TB, s check.Spec) *listenerAt {
	t.Helper()
	l, err := Open(s)
	must(t, err)
	t.Cleanup(func() {
		for i := range l.clients {
			l.drop(&l.clients[i], true)
		}
		closeSocket(l.fd, false)
		unix.Close(l.wake)
	})
	return &listenerAt{l, localAddress(l.fd).Port()}
}

// start serves until the test ends.
func start(t testing.TB, l *listenerAt) {
	var ended atomic.Bool
	stopped := make(chan bool)
	go func() {
		defer close(stopped)
		for !ended.Load() {
			l.pollOnce()
		}
	}()
	t.Cleanup(func() {
		ended.Store(true)
		l.SetMode(l.currentMode()) // ends the wait
		<-stopped
	})
}

// serve returns a listener that serves.
func serve(t testing.TB, s check.Spec) *listenerAt {
	t.Helper()
	l := open(t, s)
	start(t, l)
	return l
}

func (l *listenerAt) url() string  { return "http://" + l.addr() + "/health" }
func (l *listenerAt) addr() string { return fmt.Sprintf("127.0.0.1:%d", l.port) }

// app listens as the command would.
func app(t testing.TB, addr string) (*net.TCPListener, netip.AddrPort) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil && strings.HasPrefix(addr, "[") {
		t.Skip("no IPv6: ", err)
	}
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener), l.Addr().(*net.TCPAddr).AddrPort()
}

// web is an app: an HTTP server, which answers "fine" and the path.
func web(t testing.TB, addr string) netip.AddrPort {
	t.Helper()
	return webOf(t, addr, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "fine %s", r.URL.Path)
	})
}

func webOf(t testing.TB, addr string, handle http.HandlerFunc) netip.AddrPort {
	t.Helper()
	l, at := app(t, addr)
	s := &http.Server{Handler: handle}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return at
}

// dial returns a client's connection.
func dial(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, testutil.Patience)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(testutil.Patience))
	return c.(*net.TCPConn)
}

// accept returns the app's end of a connection.
func accept(t testing.TB, l *net.TCPListener) *net.TCPConn {
	t.Helper()
	l.SetDeadline(time.Now().Add(testutil.Patience))
	c, err := l.AcceptTCP()
	must(t, err)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(testutil.Patience))
	return c
}

// openWithApp is open with an app behind.
func openWithApp(t testing.TB) (*listenerAt, *net.TCPListener) {
	t.Helper()
	a, at := app(t, "127.0.0.1:0")
	return open(t, loopback(at)), a
}

// relayed returns both ends of a relayed connection.
func relayed(t testing.TB) (l *listenerAt, client, server *net.TCPConn) {
	t.Helper()
	l, a := openWithApp(t)
	l.limits.greeting = 0
	start(t, l)
	client = dial(t, l.addr())
	return l, client, accept(t, a)
}

// transfer writes text at one end and reads it at the other.
func transfer(t testing.TB, from, to net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(from, text)
	must(t, err)
	expect(t, to, text)
}

// expect reads want.
func expect(t testing.TB, c io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v; want %q", got[:n], err, want)
	}
}

// newClient returns an HTTP client with a new connection for each request.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testutil.Patience}
}

// askHealth makes a health check.
func askHealth(c *http.Client, url string) (status int, body string, err error) {
	r, err := c.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return r.StatusCode, string(text), err
}

func wantCheck(t testing.TB, c *http.Client, url string, status int, body string) {
	t.Helper()
	if s, b, err := askHealth(c, url); err != nil || s != status || b != body {
		t.Errorf("check of %s = %d %q, %v; want %d %q", url, s, b, err, status, body)
	}
}

// response reads a response from a connection.
func response(t testing.TB, c net.Conn, method string) (status int, body string) {
	t.Helper()
	r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	must(t, err)
	text, err := io.ReadAll(r.Body)
	must(t, err)
	return r.StatusCode, string(text)
}
