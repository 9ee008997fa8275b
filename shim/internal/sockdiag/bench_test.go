package sockdiag

import (
	"fmt"
	"io"
	"testing"

	"golang.org/x/sys/unix"

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

// BenchmarkDump dumps the connections to a port, among as many client sockets.
func BenchmarkDump(b *testing.B) {
	for _, many := range []int{100, 9900} {
		for _, info := range []bool{false, true} {
			b.Run(fmt.Sprintf("connections=%d/info=%v", many, info), func(b *testing.B) {
				c := openConn(b)
				ports := openMany(b, many)
				n := 0
				visit := func(*tcp.Socket) { n++ }
				b.ReportAllocs()
				for b.Loop() {
					n = 0
					must(b, c.Dump(Query{States: AllStates &^ In(tcp.TimeWait), Ports: ports, Info: info}, visit))
				}
				b.ReportMetric(float64(n), "sockets")
				if n != many+1 {
					b.Errorf("%d sockets, want %d", n, many+1)
				}
			})
		}
	}
}

// openMany makes many connections to the first of the returned ports. Both ends of each
// connection are in the same namespace.
func openMany(b *testing.B, many int) (ports []uint16) {
	var limit unix.Rlimit
	must(b, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	if limit.Cur < uint64(2*many+100) {
		b.Skipf("%d descriptors are needed, %d allowed", 2*many+100, limit.Cur)
	}
	l := listen(b, "tcp", "127.0.0.1:0")
	for range many {
		pair(b, l, "127.0.0.1")
	}
	return []uint16{portOf(l), 1, 2, 80, 443, 8443}
}
