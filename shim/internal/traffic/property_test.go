package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil/world"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// exchange is a request: the first and the last byte of the request, and the response.
type exchange struct{ first, last, answered time.Duration }

// randomClient returns a client that sends a few requests, one after the other on a connection. A request has up to
// twelve segments, and some are answered late.
func randomClient(r *rand.Rand, id int) (c world.Life, requests []exchange) {
	pause := func(n float64) time.Duration { return time.Duration(r.Float64()*n*1000) * time.Millisecond }
	c.Peer = fmt.Sprintf("10.0.3.%d", id)
	c.Open = pause(20) - s(14)
	at := c.Open + pause(1)
	for range 1 + r.IntN(4) {
		x := exchange{first: at}
		for range 1 + r.IntN(3)*r.IntN(7) {
			x.last = at
			c.Moves = append(c.Moves, world.Move{At: at, Bytes: 65 + r.IntN(1400)})
			at += pause(0.1)
		}
		x.answered = x.last + pause([]float64{0.1, 1, 12}[r.IntN(3)]) + s(0.005)
		c.Moves = append(c.Moves, world.Move{At: x.answered, Bytes: -65 - r.IntN(9000)})
		requests = append(requests, x)
		at = x.answered + pause(5) + s(0.005)
	}
	if r.IntN(2) == 0 {
		c.Close = max(c.Moves[len(c.Moves)-1].At, 0) + s(0.01)
	}
	return c, requests
}

// TestNoRequestCut: by the clients' own knowledge, a hold until quiet ends QuietFor after
// the last byte, and not while a request waits.
func TestNoRequestCut(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 3))
		cfg := traffic.Config{QuietFor: s(3), Probes: traffic.ProbeRule(r.IntN(3))}
		w := world.World{Events: r.IntN(2) == 0, Late: s(0.1), Config: cfg}
		var requests []exchange
		last := s(0)
		for i := range 1 + r.IntN(8) {
			c, some := randomClient(r, i)
			w.Lives = append(w.Lives, c)
			requests = append(requests, some...)
			last = max(last, c.Moves[len(c.Moves)-1].At, c.Close)
		}
		ended, _ := w.Until(world.Never, world.Condition("quiet"))
		for _, x := range requests {
			if x.last <= ended && ended < x.answered || x.first <= ended && ended < x.last {
				t.Errorf("seed %d: ended at %v, with a request from %v to %v", seed, ended, x.first, x.answered)
			}
		}
		if slack := s(1); ended > last+w.QuietFor+slack {
			t.Errorf("seed %d: ended at %v, and the last byte was at %v", seed, ended, last)
		}
	}
}
