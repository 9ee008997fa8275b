package traffic

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// tablePair is a table and a map of the same connections, each known by a random port.
type tablePair struct {
	*testing.T
	random *rand.Rand
	table  table
	plain  map[uint64]uint16
	order  []uint64 // of the next sample, some connections twice
}

// TestTable compares a table with a map, while connections come and go, and samples list
// connections in any order.
func TestTable(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		p := &tablePair{T: t, random: random, table: newTable(), plain: map[uint64]uint16{}}
		for sample := uint32(1); sample < 30; sample++ {
			p.table.rewind()
			p.change()
			for _, id := range p.order {
				p.visit(id, sample)
			}
			p.dropMissing(sample)
			if !slices.Equal(slices.Sorted(maps.Keys(p.plain)), slices.Sorted(maps.Keys(p.table.index))) || len(p.table.free)+len(p.plain)+1 != len(p.table.slots) {
				t.Fatalf("%v; want %v", p.table, p.plain)
			}
		}
	}
}

// change shuffles the order, adds connections, and removes connections, some of them by an
// event.
func (p *tablePair) change() {
	r := p.random
	if r.IntN(5) == 0 {
		r.Shuffle(len(p.order), func(i, j int) { p.order[i], p.order[j] = p.order[j], p.order[i] })
	}
	for range r.IntN(4) {
		p.order = slices.Insert(p.order, r.IntN(len(p.order)+1), r.Uint64N(20))
	}
	for range min(r.IntN(4), len(p.order)) {
		i := r.IntN(len(p.order))
		if r.IntN(2) == 0 {
			p.take(p.order[i])
		}
		p.order = slices.Delete(p.order, i, i+1)
	}
}

func (p *tablePair) take(id uint64) {
	p.Helper()
	c, known := p.table.take(id)
	if port, want := p.plain[id]; known != want || c.socket.port != port {
		p.Fatalf("took %d, %v; want %d, %v", c.socket.port, known, port, want)
	}
	delete(p.plain, id)
}

func (p *tablePair) visit(id uint64, sample uint32) {
	p.Helper()
	c, known := p.table.visit(id)
	if port, want := p.plain[id]; known != want || c.socket.port != port {
		p.Fatalf("visited %d, %v; want %d, %v", c.socket.port, known, port, want)
	}
	c.sample = sample
	if !known {
		c.socket.port = uint16(p.random.IntN(1000))
		p.plain[id] = c.socket.port
	}
}

// dropMissing removes what the sample did not show from both.
func (p *tablePair) dropMissing(sample uint32) {
	p.Helper()
	dropped := map[uint16]int{}
	for s := range p.table.notIn(sample) {
		dropped[s.socket.port]++
		p.table.take(s.id)
	}
	for id, port := range p.plain {
		if !slices.Contains(p.order, id) {
			dropped[port]--
			delete(p.plain, id)
		}
	}
	for port, n := range dropped {
		if n != 0 {
			p.Fatalf("port %d: %d connections too many are dropped", port, n)
		}
	}
}
