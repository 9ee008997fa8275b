package sockdiag

import (
	"io"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestAllocations tests Dump and Read with many connections: no allocations.
func TestAllocations(t *testing.T) {
	c := openConn(t)
	l := listen(t, "tcp", ":0")
	const many = 500
	var ends []io.Closer
	for range many {
		client, server := pair(t, l, "127.0.0.1")
		ends = append(ends, server, client)
	}
	q := Query{States: AllStates, Ports: []uint16{portOf(l), 80, 443}, Info: true}
	n := 0
	visit := func(*tcp.Socket) { n++ }
	if allocs := testing.AllocsPerRun(10, func() { must(t, c.Dump(q, visit)) }); allocs > 0 {
		t.Errorf("Dump: %v allocations, want none", allocs)
	}
	if n != 11*(many+1) { // AllocsPerRun makes 11 runs
		t.Errorf("%d sockets, want %d", n, 11*(many+1))
	}

	e, all := openEvents(t, q.Ports), openEvents(t, q.Ports)
	for _, end := range ends {
		end.Close()
	}
	received := 0
	wait(t, all, func() bool { return received >= many }, func(*tcp.Socket) { received++ })
	n = 0
	if allocs := testing.AllocsPerRun(1, func() { e.Read(visit) }); allocs > 0 || n != many {
		t.Errorf("Read: %v allocations, %d events; want none, %d", allocs, n, many)
	}
}
