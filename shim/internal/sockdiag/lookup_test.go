package sockdiag

import (
	"testing"

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
