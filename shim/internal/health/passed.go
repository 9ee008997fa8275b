package health

import (
	"net/netip"
	"sync"
	"time"
)

// Passed is a connection that we made to the target, by its ends: the command's
// socket has Target as its local address, and Local as the remote one.
type Passed struct{ Local, Target netip.AddrPort }

// remembered is how many connections that are gone are known. Where more than
// that come between two looks of the reader, the oldest count as traffic.
const remembered = 512

// ledger is what was passed. It is written by the goroutine that serves, and read
// by the one that watches the traffic; hence the mutex, which either has for
// microseconds. It is held while a connection is made: who has seen one in the
// kernel and asks afterwards, finds it here.
type ledger struct {
	mu   sync.Mutex
	open [slots]Passed
	gone [remembered]struct {
		Passed
		at time.Time
	}
	next int
}

// enter notes what make says it has made for a slot.
func (g *ledger) enter(slot int, make func() (Passed, error)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	made, err := make()
	if err == nil {
		g.open[slot] = made
	}
	return err
}

// leave notes that the slot's connection is gone.
func (g *ledger) leave(slot int, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if made := g.open[slot]; made.Local.Port() != 0 {
		g.gone[g.next].Passed, g.gone[g.next].at = made, now
		g.next = (g.next + 1) % remembered
	}
	g.open[slot] = Passed{}
}

// since appends what is open, and what has gone since then.
func (g *ledger) since(dst []Passed, then time.Time) []Passed {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, made := range g.open {
		if made.Local.Port() != 0 {
			dst = append(dst, made)
		}
	}
	for i := range g.gone {
		if was := &g.gone[i]; was.Local.Port() != 0 && !was.at.Before(then) {
			dst = append(dst, was.Passed)
		}
	}
	return dst
}
