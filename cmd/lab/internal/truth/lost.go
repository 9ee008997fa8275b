package truth

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// figures are what the stops of a row have lost.
type figures struct {
	result    // sums
	stops     int
	lost      map[when]int
	stopsLost map[bool]int // stops that lost a request, by whether it was begun
	held      []time.Duration
}

// when says at what time a request was lost.
type when struct{ begun, signalled bool }

func (r *row) figures() *figures {
	f := &figures{stops: len(r.results), lost: map[when]int{}, stopsLost: map[bool]int{}}
	for _, found := range r.results {
		f.Requests += found.Requests
		f.Twice += found.Twice
		f.Closed += found.Closed
		f.CameBack += found.CameBack
		f.Open += found.Open
		f.Losses = append(f.Losses, found.Losses...)
		f.held = append(f.held, found.Signal)
		for _, l := range found.Losses {
			f.lost[when{l.Begun, l.At > found.Signal}]++
		}
		for _, begun := range []bool{false, true} {
			if slices.ContainsFunc(found.Losses, func(l loss) bool { return l.Begun == begun }) {
				f.stopsLost[begun]++
			}
		}
	}
	slices.Sort(f.held)
	return f
}

// all returns the number of lost requests that were begun, or not.
func (f *figures) all(begun bool) int { return f.lost[when{begun, false}] + f.lost[when{begun, true}] }

// String has the figures of a race.
func (f *figures) String() string {
	text := fmt.Sprintf("%d requests in %d stops: %d lost the race in %d stops, %d were cut in %d stops",
		f.Requests, f.stops, f.all(false), f.stopsLost[false], f.all(true), f.stopsLost[true])
	if f.Open > 0 {
		text += fmt.Sprintf(", %d connections stayed open", f.Open)
	}
	return text
}

// The goals of --close-idle and --goaway: the longest median hold, and the losses of clients that retry nothing,
// as a share of those at a lull. Clients that retry shall lose nothing, and nothing that a server has
// begun shall be cut in the hold, but for a request that arrives as its connection is closed, which a
// server that cancels has begun: as measured, one of some 5 000 closings cut one of Go's.
const (
	longestHold = 9 * s
	lossShare   = 0.1

	closingsPerCut = 1000
)

// missed returns the goals that are missed, or "". lull may be nil.
func (f *figures) missed(retries bool, lull *figures) string {
	var words []string
	lost := len(f.Losses)
	if f.lost[when{begun: true}] > 1+f.Closed/closingsPerCut {
		words = append(words, "cut")
	}
	if retries && lost > 0 {
		words = append(words, "lost")
	}
	if lull != nil && !retries && float64(lost*lull.stops) > lossShare*float64(len(lull.Losses)*f.stops) {
		words = append(words, fmt.Sprintf("%d against %d in %d", lost, len(lull.Losses), lull.stops))
	}
	if f.median() > longestHold {
		words = append(words, "held long")
	}
	return strings.Join(words, ", ")
}

func (f *figures) median() time.Duration { return f.held[len(f.held)/2] }

// printLost writes what was lost, and fails if goals are missed.
func printLost(rows []*row, _ bool) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "server and client, time, contender\tstops\trequests\tlost in the hold: new\tprocessed\t"+
		"at the signal: new\tprocessed\ttwice\theld\tat most\tclosed\tback\tmissed")
	known := map[string]*figures{}
	var missed, broken int
	for _, r := range rows {
		broken += r.broken
		if len(r.results) == 0 {
			continue
		}
		f := r.figures()
		known[r.Name] = f
		goals := ""
		for _, asks := range []string{plays.CloseIdle, plays.Goaway} {
			if kind, isSuch := strings.CutSuffix(r.Name, asks); isSuch {
				goals = f.missed(r.Retries, known[kind+plays.AtLull])
			}
		}
		if goals != "" {
			missed++
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f s\t%.1f s\t%d\t%d\t%s\n", r.Name, f.stops, f.Requests,
			f.lost[when{}], f.lost[when{begun: true}], f.lost[when{signalled: true}], f.lost[when{true, true}], f.Twice,
			f.median().Seconds(), f.held[len(f.held)-1].Seconds(), f.Closed, f.CameBack, goals)
	}
	w.Flush()
	must.Be(missed+broken == 0, "%d of the rows miss goals, and %d stops could not be played", missed, broken)
}
