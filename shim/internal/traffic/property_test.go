package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/world"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// client is one that sends requests one after the other on a connection.
type client struct {
	world.Life
	requests []exchange
}

// exchange is a request: the first and the last byte of the request, and the response.
type exchange struct{ first, last, answered time.Duration }

// randomClient returns a client with a few requests of up to twelve segments, some of which
// are answered late.
func randomClient(r *rand.Rand, id int) (c client) {
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
		at = x.last + pause([]float64{0.1, 1, 12}[r.IntN(3)]) + s(0.005)
		x.answered = at
		c.Moves = append(c.Moves, world.Move{At: at, Bytes: -65 - r.IntN(9000)})
		c.requests = append(c.requests, x)
		at += pause(5) + s(0.005)
	}
	if r.IntN(2) == 0 {
		c.Close = max(c.requests[len(c.requests)-1].answered, 0) + s(0.01)
	}
	return c
}

// TestNoRequestCut: by the clients' own knowledge, a hold until quiet ends QuietFor after
// the last byte, and not while a request waits.
func TestNoRequestCut(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 3))
		cfg := traffic.Config{QuietFor: s(3), Probes: traffic.ProbeRule(r.IntN(3))}
		w := world.World{Events: r.IntN(2) == 0, Late: s(0.1), Config: cfg}
		var clients []client
		for i := range 1 + r.IntN(8) {
			clients = append(clients, randomClient(r, i))
			w.Lives = append(w.Lives, clients[i].Life)
		}
		ended, _ := w.Until(world.Never, world.Conditions["quiet"])
		last := s(0)
		for _, c := range clients {
			for _, x := range c.requests {
				last = max(last, x.last, x.answered)
				if x.last <= ended && ended < x.answered || x.first <= ended && ended < x.last {
					t.Errorf("seed %d: ended at %v, with a request from %v to %v", seed, ended, x.first, x.answered)
				}
			}
			last = max(last, c.Close)
		}
		if slack := s(1); ended > last+w.QuietFor+slack {
			t.Errorf("seed %d: ended at %v, and the last byte was at %v", seed, ended, last)
		}
	}
}

// TestMonotone: longer limits or incomplete samples never make a condition hold earlier.
func TestMonotone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	dice := func(n float64) time.Duration { return time.Duration(r.Float64()*n*100) * 10 * time.Millisecond }
	for range 2000 {
		cfg := traffic.Config{QuietFor: s(1) + dice(3), MaxSilence: s(5) + dice(5), Probes: traffic.ProbeRule(r.IntN(3))}
		base := world.World{Lives: randomLives(r, dice), Events: true, Config: cfg}
		for _, name := range []string{"settled", "quiet", "drained"} {
			cond := world.Conditions[name]
			first, _ := base.Until(world.Never, cond)
			patient, lasting := base, base
			failing := base
			patient.QuietFor += dice(2)
			lasting.MaxSilence += dice(5)
			failing.Incomplete = world.Span{From: first - s(2) + 1, To: first}
			for name, w := range map[string]*world.World{"quiet-for": &patient, "max-silence": &lasting, "incomplete": &failing} {
				if got, _ := w.Until(s(60), cond); got < first {
					t.Fatalf("%s: %v instead of %v; %+v", name, got, first, base)
				}
			}
		}
		// each condition implies the weaker conditions
		_, tr := base.Until(s(60), func(v traffic.Verdict) bool { return v.Drained && !v.Quiet || v.Quiet && !v.Settled })
		if v := tr.Sample(); v.Drained && !v.Quiet || v.Quiet && !v.Settled {
			t.Fatalf("%+v; %+v", v, base)
		}
	}
}

// randomLives returns connections of all kinds: short and kept, half-closed, without a
// byte, one-way, with PINGs, with peers that vanish, and like clockwork.
func randomLives(r *rand.Rand, dice func(seconds float64) time.Duration) (lives []world.Life) {
	sizes := []int{100, 17, 9}
	for range r.IntN(6) {
		l := world.Life{Open: dice(12) - s(6), Port: 80}
		size := sizes[r.IntN(len(sizes))]
		for at := l.Open; r.IntN(3) > 0; at += dice(3) + s(0.01) {
			l.Moves = append(l.Moves, world.Move{At: at, Bytes: size - 2*size*r.IntN(2)})
		}
		switch r.IntN(6) {
		case 0:
			l = world.Parse(fmt.Sprintf("open=%[1]d %[1]d..8/%[2]v:9", -r.IntN(9), 0.5+r.Float64()*2)).Lives[0]
		case 1:
			l.State = tcp.CloseWait
		case 2:
			l.Vanished = dice(9) + s(0.01)
		case 3:
			l = world.Parse(fmt.Sprintf("websocket=%d", r.IntN(20))).Lives[0]
		}
		if r.IntN(2) == 0 {
			l.Close = max(l.Open, 0) + s(0.01) + dice(8)
		}
		lives = append(lives, l)
	}
	if r.IntN(3) == 0 {
		lives = append(lives, probing(0.5+dice(3).Seconds(), dice(1).Seconds(), 5+dice(30).Seconds())...)
	}
	return lives
}

// TestIgnoreProbesSparesTraffic: equal requests of a peer at random times are seldom
// mistaken for probes. (One hold in five may end early.)
func TestIgnoreProbesSparesTraffic(t *testing.T) {
	const runs, busy = 200, 25
	for _, rate := range []float64{0.5, 1, 2, 4} {
		early := 0
		for seed := range uint64(runs) {
			r := rand.New(rand.NewPCG(seed, 7))
			var lives []world.Life
			for at := r.ExpFloat64() / rate; at < busy; at += r.ExpFloat64() / rate {
				lives = append(lives, probing(1, at, at+0.5)...)
			}
			last := lives[len(lives)-1].Close
			ends := func(rule traffic.ProbeRule) bool {
				w := world.World{Lives: lives, Events: true, Config: traffic.Config{Probes: rule}}
				at, _ := w.Until(world.Never, world.Conditions["quiet"])
				return at < last
			}
			if ends(traffic.IgnoreProbes) && !ends(traffic.CountProbes) {
				early++
			}
		}
		if early > runs/5 {
			t.Errorf("%v requests a second: %d of %d holds end too early", rate, early, runs)
		}
	}
}

// probing returns the connections of a health probe.
func probing(period, from, to float64) []world.Life {
	return world.Parse(fmt.Sprintf("every=%v,%v,%v probe", period, from, to)).Lives
}
