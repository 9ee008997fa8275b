package sockdiag

import (
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestSynRecv tests a half-open connection. TCP_DEFER_ACCEPT (tcp(7)) keeps a connection
// half-open until data arrives.
func TestSynRecv(t *testing.T) {
	c := openConn(t)
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			must(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 60))
		})
	}}
	config.SetMultipathTCP(false)
	l, err := config.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	client := dial(t, l, "127.0.0.1")
	q := Query{States: In(tcp.SynRecv), Ports: []uint16{portOf(l)}, Info: true}
	wantMinisock(t, dump(t, c, q), tcp.SynRecv, client)
}

// TestTimeWait tests a socket in TIME_WAIT.
func TestTimeWait(t *testing.T) {
	c := openConn(t)
	l := listen(t, "tcp", ":0")
	client, server := pair(t, l, "127.0.0.1")
	must(t, server.CloseWrite())
	client.Close()
	q := Query{States: In(tcp.TimeWait), Ports: []uint16{portOf(l)}, Info: true}
	for deadline := time.Now().Add(10 * time.Second); len(dump(t, c, q)) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("timeout waiting for TIME_WAIT")
		}
	}
	wantMinisock(t, dump(t, c, q), tcp.TimeWait, client)
}

// wantMinisock wants a single socket, the server end of client. The kernel keeps only
// state, addresses and cookie of such sockets.
func wantMinisock(t *testing.T, all map[uint64]tcp.Socket, state tcp.State, client *net.TCPConn) {
	t.Helper()
	want := tcp.Socket{State: state, Local: unmap(client.RemoteAddr()), Remote: unmap(client.LocalAddr())}
	if len(all) != 1 {
		t.Errorf("sockets %+v, want %+v", all, want)
	}
	for _, s := range all {
		if s.Cookie == 0 {
			t.Errorf("no cookie: %+v", s)
		}
		s.Cookie = 0
		if s != want {
			t.Errorf("got %+v\nwant %+v", s, want)
		}
	}
}
