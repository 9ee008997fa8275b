package health

import (
	"net/netip"
	"sync"
	"time"
)

// Passed is a connection from the listener to the target, by its ends: the
// command's socket has Target as its local address and Local as its remote one.
type Passed struct{ Local, Target netip.AddrPort }

// remembered is how many closed connections are known. If more are closed between
// two calls of Outgoing, the oldest count as traffic.
const remembered = 512

// ledger lists the connections to the target. The serving goroutine writes it and
// the goroutine that samples the traffic reads it, hence the mutex, which either
// holds for microseconds. The mutex is held while a connection is made: a reader
// that has seen a connection in the kernel, and looks here afterwards, finds it.
type ledger struct {
	mu     sync.Mutex
	open   [clientSlots]Passed
	closed [remembered]struct {
		Passed
		at time.Time
	}
	next int
}

// enter lists the connection that dial makes for a slot.
func (g *ledger) enter(slot int, dial func() (Passed, error)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	made, err := dial()
	if err == nil {
		g.open[slot] = made
	}
	return err
}

// leave notes that the slot's connection is closed.
func (g *ledger) leave(slot int, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if made := g.open[slot]; made.Local.Port() != 0 {
		g.closed[g.next].Passed, g.closed[g.next].at = made, now
		g.next = (g.next + 1) % remembered
	}
	g.open[slot] = Passed{}
}

// since appends to dst what is open, and what was closed at that time or later.
func (g *ledger) since(dst []Passed, then time.Time) []Passed {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, made := range g.open {
		if made.Local.Port() != 0 {
			dst = append(dst, made)
		}
	}
	for i := range g.closed {
		if was := &g.closed[i]; was.Local.Port() != 0 && !was.at.Before(then) {
			dst = append(dst, was.Passed)
		}
	}
	return dst
}
