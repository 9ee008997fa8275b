package sockdiag

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// world is one socket of each sort.
type world struct {
	sockets   map[string]syscall.Conn
	unclaimed *net.TCPConn // a client that has not been accepted
	ports     []uint16     // of the listeners
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{sockets: map[string]syscall.Conn{}}
	l4, l6, dual := listen(t, "tcp4", "127.0.0.1:0"), listen(t, "tcp6", "[::1]:0"), listen(t, "tcp", ":0")
	w.sockets["listener 4"], w.sockets["listener 6"], w.sockets["listener dual"] = l4, l6, dual
	w.ports = []uint16{portOf(l4), portOf(l6), portOf(dual)}
	join := func(name string, l *net.TCPListener, addr string) (client, server *net.TCPConn) {
		client, server = pair(t, l, addr)
		w.sockets[name+" client"], w.sockets[name+" server"] = client, server
		return client, server
	}

	join("fresh 4", l4, "127.0.0.1")
	join("fresh 6", l6, "::1")
	join("mapped", dual, "127.0.0.1")
	join("dual", dual, "::1")

	client, server := join("asking", dual, "127.0.0.1")
	say(t, client, server, "ping")
	say(t, server, client, "pong")
	say(t, client, server, "again")

	client, _ = join("unread", l4, "127.0.0.1")
	_, err := io.WriteString(client, "hello")
	must(t, err)

	_, server = join("unsent", l4, "127.0.0.1")
	must(t, server.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
	_, err = server.Write(make([]byte, 16<<20))
	if !os.IsTimeout(err) {
		t.Fatalf("16 MiB went out: %v", err)
	}

	client, server = join("half closed", l6, "::1")
	endWrite(t, client)
	_, err = io.Copy(io.Discard, server)
	must(t, err)
	client, server = join("half closed, idle", l6, "::1")
	say(t, client, server, "ping")
	endWrite(t, client)
	client, server = join("half closed, unread", dual, "127.0.0.1")
	say(t, client, server, "ping")
	_, err = io.WriteString(client, "hello")
	must(t, err)
	endWrite(t, client)

	w.unclaimed = dial(t, l6, "::1")
	return w
}

// endWrite waits until the other end has the FIN.
func endWrite(t testing.TB, client *net.TCPConn) {
	t.Helper()
	must(t, client.CloseWrite())
	for deadline := time.Now().Add(10 * time.Second); known(t, client).State != tcp.FinWait2; {
		if time.Now().After(deadline) {
			t.Fatalf("nobody acknowledges a FIN: %+v", known(t, client))
		}
	}
}

// TestDump: all that is told of each socket is what the kernel says when asked
// in other ways, and there is no socket more and none less.
func TestDump(t *testing.T) {
	c := openConn(t)
	w := newWorld(t)
	var all, before map[uint64]tcp.Socket
	for deadline := time.Now().Add(10 * time.Second); ; { // acknowledgements may be on their way
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
			t.Errorf("%s is missing: %+v", name, want)
		}
		got.Info.LastSent, got.Info.LastReceived, got.Info.LastAcked = 0, 0, 0
		got.Cgroup = 0
		if got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
	client := known(t, w.unclaimed)
	delete(all, client.Cookie)
	maps.DeleteFunc(all, func(_ uint64, s tcp.Socket) bool { // what is left of earlier tests
		return !slices.Contains(w.ports, s.Local.Port()) && !slices.Contains(w.ports, s.Remote.Port())
	})
	if len(all) != 1 {
		t.Errorf("beside those: %+v; want the one connection that was not accepted", all)
	}
	for _, s := range all {
		if s.Local != client.Remote || s.Remote != client.Local || s.State != tcp.Established || s.Inode != 0 || !s.HasInfo {
			t.Errorf("in the queue: %+v", s)
			break
		}
	}
}

func (w *world) known(t testing.TB) map[uint64]tcp.Socket {
	all := map[uint64]tcp.Socket{}
	for _, sock := range w.sockets {
		s := known(t, sock)
		all[s.Cookie] = s
	}
	return all
}

// TestWorldIsAsMeant: the sockets are what their names say, in the words of
// Dump, asked for by the listeners' ports.
func TestWorldIsAsMeant(t *testing.T) {
	c := openConn(t)
	w := newWorld(t)
	all := dump(t, c, Query{States: AllStates, Ports: w.ports, Info: true})
	of := func(name string) tcp.Socket { return all[cookie(t, w.sockets[name])] }

	for name, want := range map[string]string{
		"fresh 4 server":             "1 unread 0 unsent 0 received 0 sent 0 acked 0",
		"fresh 6 server":             "1 unread 0 unsent 0 received 0 sent 0 acked 0",
		"mapped server":              "1 unread 0 unsent 0 received 0 sent 0 acked 0",
		"dual server":                "1 unread 0 unsent 0 received 0 sent 0 acked 0",
		"asking server":              "1 unread 0 unsent 0 received 9 sent 4 acked 4",
		"unread server":              "1 unread 5 unsent 0 received 5 sent 0 acked 0",
		"half closed server":         "8 unread 0 unsent 0 received 0 sent 0 acked 0",
		"half closed, idle server":   "8 unread 0 unsent 0 received 4 sent 0 acked 0",
		"half closed, unread server": "8 unread 5 unsent 0 received 9 sent 0 acked 0",
		"listener 4":                 "10 unread 0 unsent 4096 received 0 sent 0 acked 0",
		"listener 6":                 "10 unread 1 unsent 4096 received 0 sent 0 acked 0",
		"listener dual":              "10 unread 0 unsent 4096 received 0 sent 0 acked 0",
	} {
		s := of(name)
		got := fmt.Sprintf("%d unread %d unsent %d received %d sent %d acked %d", s.State, s.Unread, s.Unsent, s.Info.Received, s.Info.Sent, s.Info.Acked)
		if s.State == tcp.Listen {
			want = strings.Replace(want, "4096", somaxconn(t), 1)
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
	// A receiver whose window is full may have acknowledged all that was sent to it.
	if s := of("unsent server"); s.Unsent == 0 || s.Info.Sent == 0 || s.Info.Acked > s.Info.Sent {
		t.Errorf("unsent: %+v", s)
	}
	if s := of("asking server"); s.Info.LastReceived > s.Info.LastSent || s.Info.LastSent > time.Minute {
		t.Errorf("asking: %+v", s)
	}
	if s := of("mapped server"); !s.Local.Addr().Is4() || !s.Remote.Addr().Is4() {
		t.Errorf("mapped: %+v", s)
	}
	for name := range w.sockets {
		if strings.HasSuffix(name, "client") && of(name).Cookie != 0 {
			t.Errorf("%s has no such port: %+v", name, of(name))
		}
	}
}

// TestMultipath: a listener that speaks MPTCP is told of too, with the inode by
// which its owner is found, and so are its connections, which do not.
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
	}
	if want := known(t, l); len(listeners) != 1 || listeners[0].Inode != want.Inode {
		t.Errorf("%+v; want inode %d", listeners, want.Inode)
	}
	if want := known(t, server); all[want.Cookie].Inode != want.Inode {
		t.Errorf("%+v; want %+v", all, want)
	}
}

func somaxconn(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/net/core/somaxconn")
	must(t, err)
	return string(bytes.TrimSpace(text))
}

// TestStates: only the states that were asked for, and no Info unasked.
func TestStates(t *testing.T) {
	c := openConn(t)
	w := newWorld(t)
	everything := dump(t, c, Query{States: AllStates})
	for state := tcp.Established; state <= tcp.NewSynRecv; state++ {
		some := dump(t, c, Query{States: In(state)})
		for id, s := range everything {
			if s.Inode == 0 {
				continue // what is left of earlier tests still changes
			}
			if _, found := some[id]; found != (s.State == state) {
				t.Errorf("asked for %d: %+v was told: %v", state, s, found)
			}
		}
	}
	listeners := dump(t, c, Query{States: In(tcp.Listen), Ports: w.ports})
	if len(listeners) != 3 {
		t.Errorf("listeners: %+v", listeners)
	}
	for _, s := range everything {
		if s.HasInfo {
			t.Errorf("nobody asked: %+v", s)
		}
	}
}

// TestTimes: ages are ages, of the same thing as TCP_INFO's.
func TestTimes(t *testing.T) {
	c := openConn(t)
	client, server := pair(t, listen(t, "tcp", ":0"), "::1")
	say(t, client, server, "ping")
	id := cookie(t, server)
	ages := func() tcp.Info { return dump(t, c, Query{States: AllStates, Info: true})[id].Info }
	for deadline := time.Now().Add(10 * time.Second); ages().LastReceived < 50*time.Millisecond; {
		if time.Now().After(deadline) {
			t.Fatalf("nothing gets older: %+v", ages())
		}
	}
	say(t, server, client, "pong")
	if i := ages(); i.LastReceived < 50*time.Millisecond || i.LastSent >= i.LastReceived || i.LastAcked >= i.LastReceived {
		t.Errorf("%+v", i)
	}
}

// TestCgroup: every socket here is of our own control group.
func TestCgroup(t *testing.T) {
	c := openConn(t)
	l := listen(t, "tcp", ":0")
	text, err := os.ReadFile("/proc/self/cgroup")
	must(t, err)
	_, path, v2 := strings.Cut(string(text), "0::")
	path, _, _ = strings.Cut(path, "\n")
	want := uint64(1)
	if v2 {
		var st unix.Stat_t
		for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
			var fs unix.Statfs_t
			if unix.Statfs(mount, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC && unix.Stat(mount+path, &st) == nil {
				want = st.Ino
			}
		}
		if st.Ino == 0 {
			t.Skip("the hierarchy of control groups is not mounted")
		}
	}
	for _, s := range dump(t, c, Query{States: AllStates, Ports: []uint16{portOf(l)}}) {
		if s.Cgroup != want {
			t.Errorf("control group %d, want %d: %+v", s.Cgroup, want, s)
		}
	}
}
