package rollout

import (
	"fmt"
	"math"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// findings are the results of a run.
type findings []*trial

// part sums up some of a contender's stops.
type part struct {
	Name     string
	Stops    int
	Losing   int // stops with a failed request
	Requests int
	Failed   int
	cut      int // failed requests that were in work
	killed   int
	Best     bool // of lameduck, in the chart
	// The median and the 95th percentile of the times from the stop signal to the exit, in milliseconds.
	Median, Late float64
}

// part sums up the stops of a contender with servers of a scene. Times leave out long-lived
// connections, which last to the ceiling, and trials in which the machine stood still are left
// out of all.
func (f findings) part(in, contender, servers string) *part {
	p := &part{Name: contender}
	var times []float64
	for _, t := range f {
		if t.Contender != contender || t.server.Scene != in || t.Stalled || !t.server.is(servers) {
			continue
		}
		for _, s := range t.Stops {
			p.Stops++
			p.Requests += s.Requests
			p.Failed += s.Losses()
			p.cut += s.Failed[load.Cut]
			if len(s.Failed) > 0 {
				p.Losing++
			}
			if s.Killed {
				p.killed++
			}
			if !t.server.has("websocket") {
				times = append(times, s.StopMS)
			}
		}
	}
	if slices.Sort(times); len(times) > 0 {
		quantile := func(share float64) float64 { return times[int(math.Round(share*float64(len(times)-1)))] }
		p.Median, p.Late = quantile(0.5), quantile(0.95)
	}
	return p
}

// print prints the tables of the scenes, as the pages have them, and each stop in which a hold
// lost requests.
func (f findings) print() {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, render("tables.txt", f.tables(false)))
	t.Flush()
	for _, t := range f {
		for _, s := range t.Stops {
			if len(s.Failed) > 0 && len(s.Reports) > 0 && !t.Stalled {
				fmt.Printf("%s, %s, a lag of %.1f s: %s; %s\n", t.Contender, t.Server, s.Lag.Seconds(),
					load.Summary(s.Failed), s.Reports[len(s.Reports)-1].Message)
			}
		}
	}
}
