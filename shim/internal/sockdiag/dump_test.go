package sockdiag

import (
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// world has a socket in each state.
type world struct {
	sockets   map[string]syscall.Conn
	unclaimed *net.TCPConn // a client in the accept queue
	ports     []uint16     // of the listeners
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{sockets: map[string]syscall.Conn{}}
	l4 := w.listen(t, "4", "tcp4", "127.0.0.1:0")
	l6 := w.listen(t, "6", "tcp6", "[::1]:0")
	dual := w.listen(t, "dual", "tcp", ":0")

	w.pair(t, "fresh 4", l4, "127.0.0.1")
	w.pair(t, "fresh 6", l6, "::1")
	w.pair(t, "mapped", dual, "127.0.0.1")
	w.pair(t, "dual", dual, "::1")

	client, server := w.pair(t, "asking", dual, "127.0.0.1")
	say(t, client, server, "ping")
	say(t, server, client, "pong")
	say(t, client, server, "again")

	client, _ = w.pair(t, "unread", l4, "127.0.0.1")
	_, err := io.WriteString(client, "hello")
	must(t, err)

	_, server = w.pair(t, "unsent", l4, "127.0.0.1")
	must(t, server.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
	_, err = server.Write(make([]byte, 16<<20))
	if !os.IsTimeout(err) {
		t.Fatalf("write of 16 MiB = %v, want a timeout", err)
	}

	w.halfClose(t, l6, dual)
	w.unclaimed = dial(t, l6, "::1")
	return w
}

func (w *world) listen(t testing.TB, name, network, addr string) *net.TCPListener {
	t.Helper()
	l := listen(t, network, addr)
	w.sockets["listener "+name] = l
	w.ports = append(w.ports, portOf(l))
	return l
}

func (w *world) pair(t testing.TB, name string, l *net.TCPListener, addr string) (client, server *net.TCPConn) {
	t.Helper()
	client, server = pair(t, l, addr)
	w.sockets[name+" client"] = client
	w.sockets[name+" server"] = server
	return client, server
}

// halfClose adds connections that the client has half-closed.
func (w *world) halfClose(t testing.TB, l6, dual *net.TCPListener) {
	t.Helper()
	client, server := w.pair(t, "half closed", l6, "::1")
	endWrite(t, client)
	_, err := io.Copy(io.Discard, server)
	must(t, err)
	client, server = w.pair(t, "half closed, idle", l6, "::1")
	say(t, client, server, "ping")
	endWrite(t, client)
	client, server = w.pair(t, "half closed, unread", dual, "127.0.0.1")
	say(t, client, server, "ping")
	_, err = io.WriteString(client, "hello")
	must(t, err)
	endWrite(t, client)
}

// endWrite closes the write half, and waits until the other end has acknowledged the FIN.
func endWrite(t testing.TB, client *net.TCPConn) {
	t.Helper()
	must(t, client.CloseWrite())
	for deadline := time.Now().Add(10 * time.Second); known(t, client).State != tcp.FinWait2; {
		if time.Now().After(deadline) {
			t.Fatalf("the FIN was not acknowledged: %+v", known(t, client))
		}
	}
}

// TestDump compares Dump with the results of other system calls: the same sockets, with
// the same values.
func TestDump(t *testing.T) {
	c := openConn(t)
	w := newWorld(t)
	var all, before map[uint64]tcp.Socket
	for deadline := time.Now().Add(10 * time.Second); ; { // until no acknowledgement is on its way
		before = w.known(t)
		all = dump(t, c, Query{States: AllStates, Info: true})
		if maps.Equal(before, w.known(t)) || time.Now().After(deadline) {
			break
		}
	}
	for name, sock := range w.sockets {
		want := before[cookie(t, sock)]
		got, found := all[want.Cookie]
		delete(all, want.Cookie)
		if !found {
			t.Errorf("%s: missing, want %+v", name, want)
		}
		got.Info.LastSent = 0
		got.Info.LastReceived = 0
		got.Info.LastAcked = 0
		got.Cgroup = 0
		if rtt := got.Info.RTT; got.HasInfo && (rtt <= 0 || rtt > time.Second) {
			t.Errorf("%s: a round trip takes %v", name, rtt)
		}
		got.Info.RTT = 0
		if got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
	client := known(t, w.unclaimed)
	delete(all, client.Cookie)
	maps.DeleteFunc(all, func(_ uint64, s tcp.Socket) bool { // sockets of earlier tests
		return !slices.Contains(w.ports, s.Local.Port()) && !slices.Contains(w.ports, s.Remote.Port())
	})
	if len(all) != 1 {
		t.Errorf("further sockets %+v, want only the connection in the accept queue", all)
	}
	for _, s := range all {
		if s.Local != client.Remote || s.Remote != client.Local || s.State != tcp.Established || s.Inode != 0 || !s.HasInfo {
			t.Errorf("in the accept queue: %+v", s)
			break
		}
	}
}

// known returns the values of all sockets by other system calls, by cookie.
func (w *world) known(t testing.TB) map[uint64]tcp.Socket {
	all := map[uint64]tcp.Socket{}
	for _, sock := range w.sockets {
		s := known(t, sock)
		all[s.Cookie] = s
	}
	return all
}

// TestMultipath tests an MPTCP listener and a plain TCP connection to the listener: both
// are visited with the inode of the descriptor.
func TestMultipath(t *testing.T) {
	c := openConn(t)
	l := listenWith(t, "tcp", "[::1]:0", true)
	_, server := pair(t, l, "::1")
	all := dump(t, c, Query{States: AllStates, Ports: []uint16{portOf(l)}})
	var listeners []tcp.Socket
	for _, s := range all {
		if s.State == tcp.Listen {
			listeners = append(listeners, s)
		}
		if s.HasInfo {
			t.Errorf("a socket has Info without Query.Info: %+v", s)
		}
	}
	if want := known(t, l); len(listeners) != 1 || listeners[0].Inode != want.Inode {
		t.Errorf("listeners %+v, want inode %d", listeners, want.Inode)
	}
	if want := known(t, server); all[want.Cookie].Inode != want.Inode {
		t.Errorf("sockets %+v, want %+v", all, want)
	}
}

// TestTimes tests the ages in Info.
func TestTimes(t *testing.T) {
	c := openConn(t)
	client, server := pair(t, listen(t, "tcp", ":0"), "::1")
	say(t, client, server, "ping")
	id := cookie(t, server)
	ages := func() tcp.Info { return dump(t, c, Query{States: AllStates, Info: true})[id].Info }
	for deadline := time.Now().Add(10 * time.Second); ages().LastReceived < 50*time.Millisecond; {
		if time.Now().After(deadline) {
			t.Fatalf("ages do not increase: %+v", ages())
		}
	}
	say(t, server, client, "pong")
	if i := ages(); i.LastReceived < 50*time.Millisecond || i.LastSent >= i.LastReceived || i.LastAcked >= i.LastReceived {
		t.Errorf("ages after an answer: %+v", i)
	}
}

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
