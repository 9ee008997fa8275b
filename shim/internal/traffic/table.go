package traffic

// table has the open connections by identity. The kernel lists connections in the same
// order at each sample, apart from connections that came or went. So visit tries the slot first
// that followed the current slot in the previous sample, and seldom needs the index.
type table struct {
	slots   []slot           // slot 0 has no connection: the first connection of a sample follows it
	index   map[uint64]int32 // slots by identity
	free    []int32          // slots for reuse
	current int32            // the slot visited last
}

type slot struct {
	conn
	id   uint64
	used bool
	next int32 // the slot visited next in the previous sample, perhaps reused since
}

func newTable() table { return table{slots: make([]slot, 1), index: map[uint64]int32{}} }

// rewind begins a sample.
func (t *table) rewind() { t.current = 0 }

// visit returns the connection, which is added if unknown. The pointer is valid until
// the next visit.
func (t *table) visit(id uint64) (c *conn, known bool) {
	i := t.slots[t.current].next
	known = t.slots[i].used && t.slots[i].id == id
	if !known {
		i, known = t.index[id]
		if !known {
			i = t.add(id)
		}
		t.slots[t.current].next = i
	}
	t.current = i
	return &t.slots[i].conn, known
}

func (t *table) add(id uint64) (i int32) {
	if last := len(t.free) - 1; last >= 0 {
		i = t.free[last]
		t.free = t.free[:last]
	} else {
		i = int32(len(t.slots))
		t.slots = append(t.slots, slot{})
	}
	t.slots[i] = slot{id: id, used: true}
	t.index[id] = i
	return i
}

// take removes a connection, if known.
func (t *table) take(id uint64) (c conn, known bool) {
	i, known := t.index[id]
	if known {
		c = t.slots[i].conn
		t.remove(i)
	}
	return c, known
}

func (t *table) remove(i int32) {
	delete(t.index, t.slots[i].id)
	t.slots[i].used = false
	t.free = append(t.free, i)
}

// notIn yields the connections that a sample did not show. The loop may take them.
func (t *table) notIn(sample uint32) func(yield func(s *slot) bool) {
	return func(yield func(s *slot) bool) {
		for i := range t.slots {
			if s := &t.slots[i]; s.used && s.sample != sample && !yield(s) {
				return
			}
		}
	}
}
