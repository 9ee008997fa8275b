package health

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

func TestMain(m *testing.M) { netns.Main(m, 0) }

const (
	request  = "GET / HTTP/1.1\r\n\r\n"
	ok       = healthy + common + "ok\n"
	stopping = unhealthy + common + "stopping\n"
)

// own is of a listener without a target; the kernel chooses the port.
var own = check.Spec{Listen: netip.MustParseAddrPort("127.0.0.1:0")}

// to is of a listener that relays to the target.
func to(target netip.AddrPort) check.Spec { return check.Spec{Listen: own.Listen, Target: target} }

// testListener is a Listener without limits, and its address.
type testListener struct {
	*Listener
	addr netip.AddrPort
	stop func() // ends what start began
}

// open returns a listener that does not serve yet.
func open(t *testing.T, s check.Spec) *testListener {
	t.Helper()
	l := testutil.Must(Open(s, NewConns()))
	l.limits = limits{greeting: time.Hour, silence: time.Hour, end: time.Hour, retry: time.Hour}
	t.Cleanup(func() {
		for i := range l.clients {
			l.drop(&l.clients[i], true)
		}
		closeSocket(l.fd, false)
		unix.Close(l.wake)
	})
	return &testListener{Listener: l, addr: localAddress(l.fd)}
}

// start serves until stop is called, or the test ends.
func (l *testListener) start(t *testing.T) {
	var ended atomic.Bool
	stopped := make(chan bool)
	go func() {
		defer close(stopped)
		for !ended.Load() {
			l.pollOnce()
		}
	}()
	l.stop = func() {
		ended.Store(true)
		l.SetMode(l.currentMode()) // ends the wait
		<-stopped
	}
	t.Cleanup(l.stop)
}

// pollUntil serves without blocking until ok returns true.
func (l *testListener) pollUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testutil.Eventually(t, what, func() bool {
		l.SetMode(l.currentMode()) // ends the wait
		l.pollOnce()
		return ok()
	})
}

// accept serves until n clients have been accepted.
func (l *testListener) accept(t *testing.T, n int) {
	t.Helper()
	l.pollUntil(t, "a client is accepted", func() bool { return l.conns.Opens() == uint64(n) })
}

// listenAt listens as the command would.
func listenAt(t *testing.T, addr string) (*net.TCPListener, netip.AddrPort) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skip("no IPv6? ", err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener), l.Addr().(*net.TCPAddr).AddrPort()
}

// guarded is a connection that no test keeps, or waits for without end.
func guarded(t *testing.T, c *net.TCPConn) *net.TCPConn {
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(testutil.Patience))
	return c
}

// dial returns a client's connection.
func dial(t *testing.T, to netip.AddrPort) *net.TCPConn {
	t.Helper()
	return guarded(t, testutil.Must(net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(to))))
}

// relayed returns both ends of a relayed connection.
func relayed(t *testing.T) (l *testListener, client, server *net.TCPConn) {
	t.Helper()
	a, at := listenAt(t, "127.0.0.1:0")
	l = open(t, to(at))
	l.limits.greeting = 0
	l.start(t)
	client = dial(t, l.addr)
	return l, client, guarded(t, testutil.Must(a.AcceptTCP()))
}

// transfer writes text at one end and reads it at the other.
func transfer(t *testing.T, from, to net.Conn, text string) {
	t.Helper()
	io.WriteString(from, text)
	wantText(t, to, text)
}

func wantText(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v; want %q", got[:n], err, want)
	}
}

// wantEnd wants the end of the stream, and nothing before.
func wantEnd(t *testing.T, c net.Conn) {
	t.Helper()
	if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
		t.Errorf("got %q, %v; want EOF", rest, err)
	}
}

// wantReset wants a reset, whatever comes before.
func wantReset(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.ReadAll(c); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("ReadAll = %v, want a reset", err)
	}
}

// ask makes a check, and returns the answer or the error.
func ask(t *testing.T, at netip.AddrPort) string {
	t.Helper()
	c := dial(t, at)
	io.WriteString(c, request)
	c.CloseWrite()
	answer, err := io.ReadAll(c)
	if err != nil {
		return err.Error()
	}
	return string(answer)
}

// refuses reports whether the kernel refuses a client.
func refuses(at netip.AddrPort) bool {
	c, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(at))
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// fill writes until a write would wait, and returns how many bytes of the data were taken.
func fill(c *net.TCPConn, data []byte) (n int) {
	c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	n, _ = c.Write(data)
	return n
}

// TestFault: a fault of lameduck's own in the listener costs the clients their connections, and in a
// request the answer. Neither ends the process.
func TestFault(t *testing.T) {
	l := open(t, own)
	l.conns = nil
	client := testutil.Must(net.Dial("tcp", l.addr.String()))
	defer client.Close()
	l.pollOnce()
	if _, err := l.conns.Ask(nil, time.Second); err == nil {
		t.Error("a request without an error")
	}
}
