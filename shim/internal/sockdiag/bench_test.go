package sockdiag

import (
	"fmt"
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestAllocations: a look at many connections costs no memory, and neither does
// reading an event.
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
		t.Errorf("%v allocations", allocs)
	}
	if n != 11*(many+1) { // AllocsPerRun has one run more
		t.Errorf("%d sockets", n)
	}

	e, all := openEvents(t, q.Ports), openEvents(t, q.Ports)
	for _, end := range ends {
		end.Close()
	}
	told := 0
	wait(t, all, func() bool { return told >= many }, func(*tcp.Socket) { told++ })
	n = 0
	if allocs := testing.AllocsPerRun(1, func() { e.Read(visit) }); allocs > 0 || n != many {
		t.Errorf("%v allocations of %d events", allocs, n)
	}
}

// BenchmarkDump looks at one port's connections among as many others, and ten
// listeners.
func BenchmarkDump(b *testing.B) {
	for _, many := range []int{100, 9900} {
		for _, info := range []bool{false, true} {
			b.Run(fmt.Sprintf("connections=%d/info=%v", many, info), func(b *testing.B) {
				c := openConn(b)
				ports := crowd(b, many)
				n := 0
				visit := func(*tcp.Socket) { n++ }
				b.ReportAllocs()
				for b.Loop() {
					n = 0
					must(b, c.Dump(Query{States: AllStates &^ In(tcp.TimeWait), Ports: ports, Info: info}, visit))
				}
				if b.ReportMetric(float64(n), "sockets"); n != many+1 {
					b.Errorf("%d sockets", n)
				}
			})
		}
	}
}

// crowd has many connections to the first of the ports it returns; their
// clients' ends are in the same namespace.
func crowd(b *testing.B, many int) (ports []uint16) {
	var limit unix.Rlimit
	if must(b, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)); limit.Cur < uint64(2*many+100) {
		b.Skipf("%d descriptors are needed and %d allowed", 2*many+100, limit.Cur)
	}
	l := listen(b, "tcp", "127.0.0.1:0")
	for range many {
		pair(b, l, "127.0.0.1")
	}
	return []uint16{portOf(l), 1, 2, 80, 443, 8443}
}
