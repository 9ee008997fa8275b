package rules

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
)

// options is the command line.
type options struct {
	seed  uint64
	stops int
	page  bool
}

// defaults are the seed and the number of stops of the figures in docs/how-long.md.
var defaults = options{seed: 1, stops: 10_000}

func parse(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("lab rules", flag.ContinueOnError)
	f.Uint64Var(&o.seed, "seed", defaults.seed, "what decides the stops")
	f.IntVar(&o.stops, "stops", defaults.stops, "the number of stops")
	f.BoolVar(&o.page, "page", false, "print only the table of docs/how-long.md, in Markdown")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: see lab rules -h", f.Arg(0))
	}
	if o.stops < 1 {
		return nil, fmt.Errorf("invalid number of stops %d: give 1 or more", o.stops)
	}
	return o, nil
}

// Run runs the simulation that args describe, and writes the tables to out.
func Run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	rules := append(fixedRules(), adaptiveRules()...)
	trials, err := simulate(ctx, o.seed, o.stops, rules)
	if err != nil {
		return err
	}
	results := summarize(trials, rules)
	if o.page {
		_, err = io.WriteString(out, pageTable(results))
		return err
	}
	fmt.Fprintf(out, "%d stops, seed %d\n\n", o.stops, o.seed)
	printTables(out, results)
	return nil
}
