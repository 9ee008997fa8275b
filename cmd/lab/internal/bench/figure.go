package main

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

// figure is one thing that is measured.
type figure int

// The figures, with their units.
const (
	wall     figure = iota // µs: the whole run of a command that does nothing
	cpu                    // µs: processor time of the same, the command's included
	wallMany               // µs: wall with 20 000 arguments
	rss                    // kB
	pss                    // kB
	anon                   // kB: what comes from no file
	threads                //
	switches               // a minute, of all threads, idle
	latency                // µs: from a signal to the command's answer
	storm                  // ms: processor time of the init while it reaps orphans
	size                   // kB
	look1                  // µs: one look at 1 000 connections
	look10                 // µs: at 10 000
	look50                 // µs: at 50 000
	hold                   // ms: processor time of a hold of 10 s with 10 000 connections
	unseen                 // short connections that a hold was not told of, and did not say so
)

// figures are the samples of each figure, by the contender's name.
type figures map[figure]map[string][]float64

func (f figures) add(what figure, c contender, value float64) {
	if f[what] == nil {
		f[what] = map[string][]float64{}
	}
	f[what][c.name] = append(f[what][c.name], value)
}

// median is NaN where nothing was measured.
func median(samples []float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	return slices.Sorted(slices.Values(samples))[len(samples)/2]
}

// effort is how often things are done.
type effort struct {
	runs    int // of a command that does nothing; 0: only looks at traffic
	signals int
	storms  int
	orphans int // in a storm
	copies  int // that idle side by side
	idle    time.Duration
	looks   int           // at each crowd
	crowd   int           // the largest
	holds   int           // with 10 000 connections
	hold    time.Duration // how long each is
	rush    time.Duration // how long short connections come
}

var (
	full = effort{runs: 1000, signals: 2000, storms: 9, orphans: 10000, copies: 25, idle: 2 * time.Minute,
		looks: 60, crowd: 50_000, holds: 3, hold: 10 * time.Second, rush: 5 * time.Second}
	brief = effort{runs: 300, signals: 500, storms: 5, orphans: 2000, copies: 25, idle: 20 * time.Second,
		looks: 20, crowd: 10_000, holds: 1, hold: 4 * time.Second, rush: 3 * time.Second}
)

// measure does one kind of measuring after the other, since they would disturb
// each other.
func measure(field []contender, dir string, e effort) figures {
	f := figures{}
	if e.runs > 0 {
		f.inits(field, dir, e)
	}
	f.traffic(field[len(field)-1], buildLooker(dir), e)
	return f
}

func (f figures) inits(field []contender, dir string, e effort) {
	f.start(field, build(dir, "raw", "nothing", "-E main.nothing"), e.runs)
	f.latency(field, build(dir, "raw", "answer", "-E main.answer"), e.signals)
	f.storm(field[1:], e.storms, e.orphans)
	f.idle(field[1:], e.copies, e.idle)
	for _, c := range field[1:] {
		f.add(size, c, float64(must(os.Stat(c.prefix[0])).Size())/1000)
	}
}

// warm is how many first rounds do not count.
const warm = 5

// turns calls do for each of field in every round, in another order each time,
// so that none always profits or suffers from the same one before it.
func turns[T any](rounds int, field []T, do func(of T, counts bool)) {
	for round := range warm + rounds {
		for _, i := range rand.Perm(len(field)) {
			do(field[i], round >= warm)
		}
	}
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
