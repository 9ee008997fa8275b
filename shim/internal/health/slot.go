package health

import (
	"time"

	"golang.org/x/sys/unix"
)

// phase is what a slot is doing.
type phase uint8

const (
	free phase = iota
	connecting
	passing
	asking    // it reads the head of a request that we answer
	lingering // it has its answer, and may yet read it
)

// slot is one client, and where it is passed through, its connection to the
// target.
type slot struct {
	index          int
	phase          phase
	client, target int       // descriptors, or -1
	try            int       // which target
	up, down       flow      // from the client, and to it; up.buf has the head that is asked for
	spoke          bool      // the client did, ever
	answered       bool      // the last byte went to the client
	moved          time.Time // when a byte last did
	until          time.Time // how long it may stay as it is

	atClient, atTarget int // in what is polled, or -1
}

// admit takes a new client in.
func (l *Listener) admit(client int) {
	s := l.room()
	s.client, s.moved, s.until = client, l.now, l.now.Add(l.limits.begin)
	unix.SetsockoptInt(client, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if l.during() == Pass && len(l.targets) > 0 {
		s.phase = connecting
		l.connect(s)
		return
	}
	s.phase = asking
}

// room is a free slot; where there is none, one is made so.
func (l *Listener) room() *slot {
	for {
		for i := range l.slots {
			if l.slots[i].phase == free {
				return &l.slots[i]
			}
		}
		l.evict(nil)
	}
}

// evict resets the least worthy client but one, if there is any.
func (l *Listener) evict(but *slot) bool {
	var worst *slot
	for i := range l.slots {
		s := &l.slots[i]
		if s.phase != free && s != but && (worst == nil || s.lessWorthy(worst)) {
			worst = s
		}
	}
	if worst == nil {
		return false
	}
	l.drop(worst, worst.phase != lingering)
	return true
}

func (s *slot) lessWorthy(than *slot) bool {
	if a, b := s.worth(), than.worth(); a != b {
		return a < b
	}
	return s.moved.Before(than.moved)
}

func (s *slot) worth() int {
	switch {
	case s.phase == lingering:
		return 0
	case !s.spoke:
		return 1
	}
	return 2
}

// drop frees the slot.
func (l *Listener) drop(s *slot, reset bool) {
	hangUp(s.client, reset)
	l.leave(s, reset)
	*s = slot{index: s.index, client: -1, target: -1, up: s.up.renewed(), down: s.down.renewed(), atClient: -1, atTarget: -1}
}

// leave closes the connection to the target.
func (l *Listener) leave(s *slot, reset bool) {
	if s.target >= 0 {
		hangUp(s.target, reset)
		l.made.leave(s.index, time.Now()) // not earlier than it was so
		s.target = -1
	}
}

// touch notes that a byte moved.
func (l *Listener) touch(s *slot) {
	s.moved = l.now
	switch {
	case s.phase != passing: // the time is limited as a whole
	case s.up.eof || s.down.eof:
		s.until = l.now.Add(l.limits.begin)
	default:
		s.until = l.now.Add(l.limits.idle)
	}
}
