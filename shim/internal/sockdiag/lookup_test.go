package sockdiag

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestLookup compares Lookup with Dump: the same connections of both families, with the
// same values but for ages. Connections that are gone are not visited.
func TestLookup(t *testing.T) {
	c := openConn(t)
	w := newWorld(t)
	var list []tcp.Socket
	for _, s := range dump(t, c, Query{States: In(tcp.Established, tcp.CloseWait), Ports: w.ports, Info: true}) {
		list = append(list, s)
	}
	for range 3 { // more than a batch
		list = append(list, list...)
	}
	gone := list[0]
	gone.Cookie++
	list = append(list, gone)
	seen := map[int]bool{}
	must(t, c.Lookup(list, func(i int, got *tcp.Socket) {
		want := list[i]
		seen[i] = true
		for _, s := range []*tcp.Socket{got, &want} {
			s.Info.LastSent = 0
			s.Info.LastReceived = 0
			s.Info.LastAcked = 0
		}
		if *got != want {
			t.Errorf("connection %d:\n got %+v\nwant %+v", i, *got, want)
		}
	}))
	if len(seen) != len(list)-1 || seen[len(list)-1] || len(list) < 2*lookupBatch {
		t.Errorf("visited %d of %d connections, the one that is gone: %v", len(seen), len(list), seen[len(list)-1])
	}
	// The next dump is not disturbed.
	if again := dump(t, c, Query{States: In(tcp.Established, tcp.CloseWait), Ports: w.ports}); 8*len(again) != len(list)-1 {
		t.Errorf("%d connections, want %d", len(again), (len(list)-1)/8)
	}
}

// TestLookupBound: Lookup does not find a connection that is bound to a device.
func TestLookupBound(t *testing.T) {
	c := openConn(t)
	l := listen(t, "tcp4", "127.0.0.1:0")
	_, server := pair(t, l, "127.0.0.1")
	var list []tcp.Socket
	for _, s := range dump(t, c, Query{States: In(tcp.Established), Ports: []uint16{portOf(l)}, Info: true}) {
		list = append(list, s)
	}
	found := 0
	visit := func(int, *tcp.Socket) { found++ }
	must(t, c.Lookup(list, visit))
	onFD(t, server, func(fd int) { must(t, unix.BindToDevice(fd, "lo")) })
	must(t, c.Lookup(list, visit))
	if len(list) != 1 || found != 1 {
		t.Errorf("found %d times in %d connections, want once, before the connection was bound", found, len(list))
	}
}

// TestLookupError: an error other than that a connection is gone is an error of Lookup.
func TestLookupError(t *testing.T) {
	for errno, gone := range map[unix.Errno]bool{unix.ENOENT: true, unix.ESTALE: true, unix.EPERM: false, unix.ENOMEM: false, unix.EAGAIN: false} {
		var c Conn
		payload := native.AppendUint32(nil, uint32(-int32(errno)))
		err := c.visitReply(message{kind: unix.NLMSG_ERROR, payload: payload}, 0, func(int, *tcp.Socket) { t.Errorf("%v: visited", errno) })
		if gone && err != nil || !gone && err != errno {
			t.Errorf("%v: %v", errno, err)
		}
	}
}
