package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// figure is a quantity that is measured.
type figure int

// The figures, with their units.
const (
	wall     figure = iota // µs: the whole run of a command that does nothing
	cpu                    // µs: processor time of the same, the command's included
	faults                 // minor page faults of the whole run of /bin/true
	wallMany               // µs: wall with 20 000 arguments
	rss                    // kB
	pss                    // kB
	anon                   // kB: memory that comes from no file
	threads                //
	switches               // a minute, of all threads, idle
	latency                // µs: from a signal to the command's answer
	storm                  // ms: processor time of the init while it reaps orphans
	size                   // kB
	sample1                // µs: one sample of 1 000 connections
	sample10               // µs: of 10 000
	sample50               // µs: of 50 000
	hold                   // ms: processor time of a hold of 10 s with 10 000 connections
	unseen                 // short connections missing from the report, which does not say "at least"
)

// figures are the samples of each figure, by the contender's name.
type figures map[figure]map[string][]float64

func (f figures) add(what figure, c contender, value float64) {
	if f[what] == nil {
		f[what] = map[string][]float64{}
	}
	f[what][c.name] = append(f[what][c.name], value)
}

// median returns NaN for no samples.
func median(samples []float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	return slices.Sorted(slices.Values(samples))[len(samples)/2]
}

// effort says how often a measurement is repeated.
type effort struct {
	runs    int // of a command that does nothing; 0: only samples of traffic
	signals int
	storms  int
	orphans int // in a storm
	copies  int // of each init, idle side by side
	idle    time.Duration
	samples int           // of each crowd
	crowd   int           // the largest
	holds   int           // with 10 000 connections
	hold    time.Duration // the length of each hold
	rush    time.Duration // of short connections
}

var (
	full = effort{runs: 1000, signals: 2000, storms: 9, orphans: 10000, copies: 25, idle: 2 * time.Minute,
		samples: 60, crowd: 50_000, holds: 3, hold: 10 * time.Second, rush: 5 * time.Second}
	brief = effort{runs: 300, signals: 500, storms: 5, orphans: 2000, copies: 25, idle: 20 * time.Second,
		samples: 20, crowd: 10_000, holds: 1, hold: 4 * time.Second, rush: 3 * time.Second}
)

// measure takes the figures one after the other: two measurements at a time would
// disturb each other.
func measure(field []contender, b builder, e effort) figures {
	f := figures{}
	if e.runs > 0 {
		f.inits(field, b, e)
	}
	f.traffic(field[len(field)-1], b.sampler(), e)
	return f
}

func (f figures) inits(field []contender, b builder, e effort) {
	f.start(field, b.program("raw", "nothing", "-E main.nothing"), e.runs)
	f.latency(field, b.program("raw", "answer", "-E main.answer"), e.signals)
	f.storm(field[1:], e.storms, e.orphans)
	f.footprint(field[1:], e)
}

// warm is the number of first rounds that do not count.
const warm = 5

// turns calls do for each contender in every round, in a new order each time, so that no
// contender always profits or suffers from the same predecessor.
func turns[T any](rounds int, field []T, do func(of T, counts bool)) {
	for round := range warm + rounds {
		for _, i := range rand.Perm(len(field)) {
			do(field[i], round >= warm)
		}
	}
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
