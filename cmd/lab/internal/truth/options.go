package truth

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// options is the command line.
type options struct {
	lameduck string
	repeat   int
	parallel int
	quick    bool
	list     bool
	cases    []truthCase
}

func parse(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("lab truth", flag.ContinueOnError)
	f.IntVar(&o.repeat, "n", 3, "trials of each case")
	f.IntVar(&o.parallel, "parallel", 32, "trials at a time; most of them sleep")
	f.BoolVar(&o.quick, "quick", false,
		"the selection of make test: each case once, a wrong one twice more, and most of the three decide")
	f.BoolVar(&o.list, "list", false, "print the names of the cases")
	pattern := f.String("run", "", "only the cases whose names match this regular expression")
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: lab truth [flags] LAMEDUCK")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	match, err := regexp.Compile(*pattern)
	if err != nil {
		return nil, fmt.Errorf("invalid -run: %w", err)
	}
	o.cases = slices.DeleteFunc(table(), func(c truthCase) bool {
		return !match.MatchString(c.name) || o.quick && !c.quick
	})
	if len(o.cases) == 0 {
		return nil, errors.New("no case has such a name: see lab truth -list")
	}
	if o.list {
		return o, nil
	}
	if f.NArg() != 1 {
		return nil, errors.New("want one argument, the built lameduck; see lab truth -h")
	}
	o.lameduck, err = filepath.Abs(f.Arg(0))
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(o.lameduck)
	return o, err
}
