package kept

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
)

// options is the command line.
type options struct {
	stops, jobs int
	lag         time.Duration
	run         *regexp.Regexp
	json, from  string
	lameduck    string
}

func parse(args []string) (o options, err error) {
	o.run = regexp.MustCompile("")
	f := flag.NewFlagSet("lab kept [flags] LAMEDUCK", flag.ContinueOnError)
	f.IntVar(&o.stops, "n", 4, "stops of each row and contender")
	f.DurationVar(&o.lag, "lag", time.Second, "the balancer's, half a second more or less")
	f.IntVar(&o.jobs, "jobs", 4, "stops at a time")
	f.TextVar(o.run, "run", o.run, "only what matches this regular expression: Node.*20ms.*close-idle")
	f.StringVar(&o.json, "json", "", "add a line for each stop to this file")
	f.StringVar(&o.from, "from", "", "print the table of such a file; LAMEDUCK is not needed")
	o.lameduck, err = stage.Parse(f, args, "from")
	return o, err
}

// Run plays the stops of args, and writes the table to out.
func Run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	var all []*trial
	err = must.Try(func() {
		if o.from != "" {
			all = o.read()
			return
		}
		shared := must.Get(stage.Enter(stage.All, false))
		signal.Reset(syscall.SIGPIPE) // which a write to a closed connection raises
		// The servers run as nobody, who may not see the folder of the programs.
		must.Do(stage.Shell(`cp "$1" "$3/lameduck"; cp "$2" "$3/lab"`, o.lameduck, fmt.Sprintf("/proc/%d/exe", os.Getpid()), shared))
		all = o.plan()
		o.playAll(ctx, shared, all)
	})
	if err != nil {
		return err
	}
	return printTable(out, all)
}

// plan returns the trials: those of a contender, which take equally long, after those of
// another.
func (o *options) plan() (all []*trial) {
	list := rows()
	for _, contender := range contenders {
		for n := range o.stops * len(list) {
			r := &list[n%len(list)]
			for _, think := range r.thinks {
				k := kind{r.name, think, contender}
				if !o.run.MatchString(k.String()) {
					continue
				}
				if missing := r.missing(); len(missing) > 0 {
					fmt.Fprintf(os.Stderr, "lab: %v is left out: no %s\n", k, strings.Join(missing, ", "))
					continue
				}
				all = append(all, &trial{kind: k, row: r, number: len(all), lag: o.lag})
			}
		}
	}
	return all
}

// playAll plays so many trials at a time, and begins them together: servers that start would
// disturb the others.
func (o *options) playAll(ctx context.Context, shared string, all []*trial) {
	for part := range slices.Chunk(all, o.jobs) {
		each := func(do func(*trial)) { stage.Beside(context.WithoutCancel(ctx), part, len(part), 0, do) }
		each(func(t *trial) { t.err = must.Try(func() { t.start(ctx, shared) }) })
		each(func(t *trial) {
			if t.err == nil {
				t.err = must.Try(func() { t.play(ctx) })
			}
		})
		each((*trial).close)
		must.Do(ctx.Err())
		if o.json != "" {
			o.write(part)
		}
	}
}

func (o *options) write(part []*trial) {
	file := must.Get(os.OpenFile(o.json, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644))
	defer file.Close()
	for _, t := range part {
		if t.err == nil {
			must.Do(json.NewEncoder(file).Encode(t))
		}
	}
}

// read returns the trials that were written.
func (o *options) read() (all []*trial) {
	file := must.Get(os.Open(o.from))
	defer file.Close()
	for lines := json.NewDecoder(file); lines.More(); {
		t := &trial{}
		must.Do(lines.Decode(t))
		all = append(all, t)
	}
	return all
}

// figures are those of a kind.
type figures struct {
	stops, requests, closed, back, twice int
	lost                                 [2][2]int // by signal and processed
	held                                 []float64
}

func (f *figures) add(t *trial) {
	f.stops++
	f.requests += t.Requests
	f.closed += t.Closed
	f.back += t.CameBack
	f.twice += t.Twice
	f.held = append(f.held, float64(t.HeldMS)/1000)
	slices.Sort(f.held)
	for _, l := range t.Lost {
		f.lost[number(l.Signal)][number(l.Processed)]++
	}
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (f *figures) allLost() int { return f.lost[0][0] + f.lost[0][1] + f.lost[1][0] + f.lost[1][1] }

// printTable prints a line for each kind of trial, and returns an error if goals are missed.
func printTable(out io.Writer, all []*trial) error {
	var kinds []kind
	sums := map[kind]*figures{}
	for _, t := range all {
		if t.err != nil {
			fmt.Fprintf(os.Stderr, "lab: %v is left out: %v\n", t.kind, t.err)
			continue
		}
		if sums[t.kind] == nil {
			sums[t.kind] = &figures{}
			kinds = append(kinds, t.kind)
		}
		sums[t.kind].add(t)
	}
	slices.SortStableFunc(kinds, func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Think, b.Think))
	})
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "server and client\ttime\tcontender\tstops\trequests\tlost in the hold: new\tprocessed\t"+
		"at the signal: new\tprocessed\ttwice\theld\tat most\tclosed\tback\tmissed")
	var missed int
	for _, k := range kinds {
		f := sums[k]
		goals := ""
		if strings.Contains(k.Contender, "--close-idle") {
			lull := k
			lull.Contender = atLull
			goals = f.missed(retries(k.Server), sums[lull])
			missed += number(goals != "")
		}
		fmt.Fprintf(w, "%s\t%v\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f s\t%.1f s\t%d\t%d\t%s\n", k.Server, k.Think, k.Contender,
			f.stops, f.requests, f.lost[0][0], f.lost[0][1], f.lost[1][0], f.lost[1][1], f.twice,
			f.held[len(f.held)/2], f.held[len(f.held)-1], f.closed, f.back, goals)
	}
	if missed > 0 {
		return errors.Join(w.Flush(), fmt.Errorf("%d of the rows miss goals", missed))
	}
	return w.Flush()
}

// The goals of --close-idle: the longest median hold, and the losses of clients that retry
// nothing, as a share of those at a lull. Clients that retry shall lose nothing, and
// nothing that a server has begun shall be cut in the hold.
const (
	longestHold = 9 // s
	lossShare   = 0.1
)

// missed returns the goals that are missed, or "". lull may be nil.
func (f *figures) missed(retries bool, lull *figures) string {
	var words []string
	if f.lost[0][1] > 0 {
		words = append(words, "cut")
	}
	switch {
	case retries && f.allLost() > 0:
		words = append(words, "lost")
	case lull != nil && !retries && float64(f.allLost()*lull.stops) > lossShare*float64(lull.allLost()*f.stops):
		words = append(words, fmt.Sprintf("%d against %d in %d", f.allLost(), lull.allLost(), lull.stops))
	}
	if f.held[len(f.held)/2] > longestHold {
		words = append(words, "held long")
	}
	return strings.Join(words, ", ")
}

// retries reports whether the client of a row sends again what was not processed.
func retries(name string) bool {
	list := rows()
	i := slices.IndexFunc(list, func(r row) bool { return r.name == name })
	return i >= 0 && list[i].retries
}
