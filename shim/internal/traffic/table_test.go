package traffic

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTable compares a table with a map, while connections come and go, and samples list
// connections in any order, some of them twice.
func TestTable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		table, plain := newTable(), map[uint64]uint16{}
		var order []uint64
		for sample := uint32(1); sample < 30; sample++ {
			table.rewind()
			if r.IntN(5) == 0 {
				r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			}
			for range r.IntN(4) {
				order = slices.Insert(order, r.IntN(len(order)+1), r.Uint64N(20))
			}
			for range min(r.IntN(4), len(order)) {
				i := r.IntN(len(order))
				if r.IntN(2) == 0 {
					c, known := table.take(order[i])
					if port, want := plain[order[i]]; known != want || c.port != port {
						t.Fatalf("took %d, %v; want %d, %v", c.port, known, port, want)
					}
					delete(plain, order[i])
				}
				order = slices.Delete(order, i, i+1)
			}
			for _, id := range order {
				c, known := table.visit(id)
				if port, want := plain[id]; known != want || c.port != port {
					t.Fatalf("saw %d, %v; want %d, %v", c.port, known, port, want)
				}
				c.sample = sample
				if !known {
					c.port = uint16(r.IntN(1000))
					plain[id] = c.port
				}
			}
			gone := map[uint16]int{}
			for s := range table.notIn(sample) {
				gone[s.port]++
				table.take(s.id)
			}
			for id, port := range plain {
				if !slices.Contains(order, id) {
					gone[port]--
					delete(plain, id)
				}
			}
			for port, n := range gone {
				if n != 0 {
					t.Fatalf("%d: %d too many are gone", port, n)
				}
			}
			if !slices.Equal(slices.Sorted(maps.Keys(plain)), slices.Sorted(maps.Keys(table.index))) || len(table.free)+len(plain)+1 != len(table.slots) {
				t.Fatalf("%v; want %v", table, plain)
			}
		}
	}
}
