package traffic

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// client is one that sends requests one after the other on a connection.
type client struct {
	life
	requests []exchange
}

// exchange is a request: the first and the last byte of the request, and the response.
type exchange struct{ first, last, answered time.Duration }

// randomClient returns a client with a few requests of up to twelve segments, some of which
// are answered late.
func randomClient(r *rand.Rand, id int) (c client) {
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

// TestNoRequestCut: by the clients' own knowledge, a hold until quiet ends QuietFor after
// the last byte, and not while a request waits.
func TestNoRequestCut(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 3))
		w := world{events: r.IntN(2) == 0, late: s(0.1), Config: Config{QuietFor: s(3), Probes: ProbeRule(r.IntN(3))}}
		var clients []client
		for i := range 1 + r.IntN(8) {
			clients = append(clients, randomClient(r, i))
			w.lives = append(w.lives, clients[i].life)
		}
		ended, _ := w.until(never, conditions["quiet"])
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

// TestMonotone: longer limits or incomplete samples never make a condition hold earlier.
func TestMonotone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	dice := func(n float64) time.Duration { return time.Duration(r.Float64()*n*100) * 10 * time.Millisecond }
	for range 2000 {
		cfg := Config{QuietFor: s(1) + dice(3), MaxSilence: s(5) + dice(5), Probes: ProbeRule(r.IntN(3))}
		base := world{lives: randomLives(r, dice), events: true, Config: cfg}
		for _, name := range []string{"settled", "quiet", "drained"} {
			cond := conditions[name]
			first, _ := base.until(never, cond)
			patient, lasting := base, base
			failing := base
			patient.QuietFor += dice(2)
			lasting.MaxSilence += dice(5)
			failing.incomplete = span{first - s(2) + 1, first}
			for name, w := range map[string]*world{"quiet-for": &patient, "max-silence": &lasting, "incomplete": &failing} {
				if got, _ := w.until(s(60), cond); got < first {
					t.Fatalf("%s: %v instead of %v; %+v", name, got, first, base)
				}
			}
		}
		// each condition implies the weaker conditions
		_, tr := base.until(s(60), func(v Verdict) bool { return v.Drained && !v.Quiet || v.Quiet && !v.Settled })
		if v := tr.Verdict(); v.Drained && !v.Quiet || v.Quiet && !v.Settled {
			t.Fatalf("%+v; %+v", v, base)
		}
	}
}

// randomLives returns connections of all kinds: short and kept, half-closed, without a
// byte, one-way, with PINGs, with peers that vanish, and like clockwork.
func randomLives(r *rand.Rand, dice func(seconds float64) time.Duration) (lives []life) {
	sizes := []int{100, 17, 9}
	for range r.IntN(6) {
		l := life{open: dice(12) - s(6), port: 80}
		size := sizes[r.IntN(len(sizes))]
		for at := l.open; r.IntN(3) > 0; at += dice(3) + s(0.01) {
			l.moves = append(l.moves, move{at, size - 2*size*r.IntN(2)})
		}
		switch r.IntN(6) {
		case 0:
			l = parseWorld(fmt.Sprintf("open=%[1]d %[1]d..8/%[2]v:9", -r.IntN(9), 0.5+r.Float64()*2)).lives[0]
		case 1:
			l.state = tcp.CloseWait
		case 2:
			l.vanished = dice(9) + s(0.01)
		case 3:
			l = parseWorld(fmt.Sprintf("websocket=%d", r.IntN(20))).lives[0]
		}
		if r.IntN(2) == 0 {
			l.close = max(l.open, 0) + s(0.01) + dice(8)
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
			var lives []life
			for at := r.ExpFloat64() / rate; at < busy; at += r.ExpFloat64() / rate {
				lives = append(lives, probing(1, at, at+0.5)...)
			}
			last := lives[len(lives)-1].close
			ends := func(rule ProbeRule) bool {
				w := world{lives: lives, events: true, Config: Config{Probes: rule}}
				at, _ := w.until(never, conditions["quiet"])
				return at < last
			}
			if ends(IgnoreProbes) && !ends(CountProbes) {
				early++
			}
		}
		if early > runs/5 {
			t.Errorf("%v requests a second: %d of %d holds end too early", rate, early, runs)
		}
	}
}

// probing returns the connections of a health probe.
func probing(period, from, to float64) []life {
	return parseWorld(fmt.Sprintf("every=%v,%v,%v probe", period, from, to)).lives
}
