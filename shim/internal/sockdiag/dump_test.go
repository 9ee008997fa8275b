package sockdiag

import (
	"net"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

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
