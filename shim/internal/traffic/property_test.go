package traffic

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// script is a client that sends requests one after the other on a connection.
type script struct {
	life
	requests []exchange
}

// exchange is a request: the first and the last byte of the request, and the response.
type exchange struct{ first, last, answered time.Duration }

// randomScript returns a client with a few requests of up to twelve segments, some of which
// are answered late.
func randomScript(r *rand.Rand, id int) (c script) {
	pause := func(n float64) time.Duration { return time.Duration(r.Float64()*n*1000) * time.Millisecond }
	c.peer = fmt.Sprintf("10.0.3.%d", id)
	c.open = pause(20) - s(14)
	at := c.open + pause(1)
	for range 1 + r.IntN(4) {
		x := exchange{first: at}
		for range 1 + r.IntN(3)*r.IntN(7) {
			x.last = at
			c.moves = append(c.moves, move{at, 65 + r.IntN(1400)})
			at += pause(0.1)
		}
		at = x.last + pause([]float64{0.1, 1, 12}[r.IntN(3)]) + s(0.005)
		x.answered = at
		c.moves = append(c.moves, move{at, -65 - r.IntN(9000)})
		c.requests = append(c.requests, x)
		at += pause(5) + s(0.005)
	}
	if r.IntN(2) == 0 {
		c.close = max(c.requests[len(c.requests)-1].answered, 0) + s(0.01)
	}
	return c
}

// TestNoRequestCut: by the scripts' own knowledge, a hold until quiet ends QuietFor after
// the last byte, and not while a request waits.
func TestNoRequestCut(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 3))
		w := world{events: r.IntN(2) == 0, late: s(0.1), Config: Config{QuietFor: s(3), Probes: ProbeRule(r.IntN(3))}}
		var clients []script
		for i := range 1 + r.IntN(8) {
			clients = append(clients, randomScript(r, i))
			w.lives = append(w.lives, clients[i].life)
		}
		ended, _ := w.until(never, quiet)
		last := s(0)
		for _, c := range clients {
			for _, x := range c.requests {
				last = max(last, x.last, x.answered)
				if x.last <= ended && ended < x.answered || x.first <= ended && ended < x.last {
					t.Errorf("seed %d: ended at %v, with a request from %v to %v", seed, ended, x.first, x.answered)
				}
			}
			last = max(last, c.close)
		}
		if slack := s(1); ended > last+w.QuietFor+slack {
			t.Errorf("seed %d: ended at %v, and the last byte was at %v", seed, ended, last)
		}
	}
}
