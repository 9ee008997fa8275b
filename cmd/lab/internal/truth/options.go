package truth

import (
	"errors"
	"flag"
	"regexp"
	"slices"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"

	"github.com/lameduck-init/lameduck/internal/plays"
)

// options is the command line.
type options struct {
	lameduck string
	repeat   int
	parallel int
	quick    bool
	list     bool
	cases    []plays.Row
}

// parse reads the command line of a command, which chooses from cases.
func parse(command string, cases []plays.Row, args []string) (o options, err error) {
	match := regexp.MustCompile("")
	f := flag.NewFlagSet("lab "+command+" [flags] LAMEDUCK", flag.ContinueOnError)
	f.IntVar(&o.repeat, "n", 3, "trials of each case")
	f.IntVar(&o.parallel, "parallel", 32, "trials at a time; most of them sleep")
	f.BoolVar(&o.quick, "quick", false,
		"the selection of make test: each case once, a wrong one twice more, and most of the three decide")
	f.BoolVar(&o.list, "list", false, "print the names of the cases")
	f.TextVar(match, "run", match, "only the cases whose names match this regular expression")
	o.lameduck, err = stage.Parse(f, args, "list")
	o.cases = slices.DeleteFunc(cases, func(c plays.Row) bool {
		return !match.MatchString(c.Name) || o.quick && !c.Quick
	})
	if err == nil && len(o.cases) == 0 {
		err = errors.New("no case has such a name: see -list")
	}
	return o, err
}
