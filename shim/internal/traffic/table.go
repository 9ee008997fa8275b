package traffic

// table has the open connections, by what they are known by. The kernel tells of
// them in the same order at each look, but for those that come and go; so the one
// that was seen after another the last time is tried first, and most looks do
// without the index.
type table struct {
	slots   []slot           // the first is nobody's: after it comes the first one of a look
	index   map[uint64]int32 // the slots by id
	free    []int32          // slots that can be used again
	current int32            // the slot that was seen last
}

type slot struct {
	conn
	id   uint64
	used bool
	next int32 // the slot that was seen next, which may be another's by now
}

func newTable() table { return table{slots: make([]slot, 1), index: map[uint64]int32{}} }

// rewind begins a look.
func (t *table) rewind() { t.current = 0 }

// visit is the connection, which is added where it is not known. It is valid until
// the next one is seen.
func (t *table) visit(id uint64) (c *conn, known bool) {
	i := t.slots[t.current].next
	if known = t.slots[i].used && t.slots[i].id == id; !known {
		if i, known = t.index[id]; !known {
			i = t.add(id)
		}
		t.slots[t.current].next = i
	}
	t.current = i
	return &t.slots[i].conn, known
}

func (t *table) add(id uint64) (i int32) {
	if last := len(t.free) - 1; last >= 0 {
		i, t.free = t.free[last], t.free[:last]
	} else {
		i = int32(len(t.slots))
		t.slots = append(t.slots, slot{})
	}
	t.slots[i] = slot{id: id, used: true}
	t.index[id] = i
	return i
}

// take removes the connection, where it is known.
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

// notSeenIn yields those that the look did not see. They may be taken meanwhile.
func (t *table) notSeenIn(look uint32) func(yield func(s *slot) bool) {
	return func(yield func(s *slot) bool) {
		for i := range t.slots {
			if s := &t.slots[i]; s.used && s.look != look && !yield(s) {
				return
			}
		}
	}
}
