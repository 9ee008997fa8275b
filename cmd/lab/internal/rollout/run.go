package rollout

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
)

// options is the command line.
type options struct {
	demo      bool
	dot       string // on standard error, after each trial
	replicas  int
	repeat    int
	stops     int // in a trial, at most
	run       string
	quick     bool // only what the claims are about
	lameduck  string
	json, svg string // files to write, or ""

	dir  string       // for files, or "" on the loopback interface
	lone bool         // nobody else uses the network namespace
	used atomic.Int32 // numbers of replicas and balancers
}

// folder returns a number that was not used before, and an empty folder, or "" on the loopback
// interface.
func (o *options) folder() (number int, dir string) {
	number = int(o.used.Add(1))
	if o.dir != "" {
		dir = filepath.Join(o.dir, fmt.Sprint(number))
		must.Do(os.Mkdir(dir, 0o755))
	}
	return number, dir
}

// Run plays the rollouts of args, and prints the tables.
func Run(ctx context.Context, args []string) {
	o := &options{dot: ".", replicas: 5, repeat: 2, stops: 4}
	o.main("rollout", args, func() findings {
		// In new namespaces, as PID 1: the experiment leaves the machine's network alone, and no
		// process outlives the laboratory.
		o.dir = stage.Enter(ctx, stage.All)
		f := o.plan()
		must.Do(o.playAll(ctx, f))
		f.print()
		return f
	})
}

// main reads the command line of a subcommand, with the defaults of o, plays, writes the files,
// and judges.
func (o *options) main(name string, args []string, play func() findings) {
	f := flag.NewFlagSet("lab "+name+" [flags] LAMEDUCK", flag.ContinueOnError)
	f.StringVar(&o.json, "json", "", "write the figures of the run to this file")
	f.StringVar(&o.svg, "svg", "", "draw the run into this file")
	f.IntVar(&o.repeat, "n", o.repeat, "rollouts of each contender and server")
	f.StringVar(&o.run, "run", o.run, `only what matches this regular expression: "steady: go \| (bare|.*quiet)$"`)
	f.BoolVar(&o.quick, "quick", false, "only what claims are about, once, two stops each")
	o.lameduck = stage.Parse(f, args)
	if o.quick {
		o.repeat, o.stops = 1, 2
	}
	found := play()
	if o.json != "" {
		must.Write(o.json, string(must.Get(json.Marshal(found)))+"\n")
	}
	if o.svg != "" {
		must.Write(o.svg, found.draw())
	}
	var judged strings.Builder
	err := found.judge(&judged)
	if err != nil || !o.demo { // which ends with lameduck's lines
		fmt.Print("\n", judged.String())
	}
	must.Do(err)
}
