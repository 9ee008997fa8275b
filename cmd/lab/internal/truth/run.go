package truth

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// Run plays the cases of args, and prints when the holds have ended.
func Run(ctx context.Context, args []string) { run(ctx, "truth", plays.Table(), args, printEnded) }

// Kept plays the cases of lab kept, and prints what was lost.
func Kept(ctx context.Context, args []string) { run(ctx, "kept", plays.Kept(), args, printLost) }

// run plays the cases that the arguments of a command choose, and prints what became of them.
func run(ctx context.Context, command string, cases []plays.Row, args []string, print func(rows []*row, quick bool)) {
	match := regexp.MustCompile("")
	f := flag.NewFlagSet("lab "+command+" [flags] LAMEDUCK", flag.ContinueOnError)
	repeat := f.Int("n", 3, "trials of each case")
	quick := f.Bool("quick", false,
		"the selection of make test: each case once, a wrong one four times more, and most of the five decide")
	f.TextVar(match, "run", match, "only the cases whose names match this regular expression")
	lameduck := stage.Parse(f, args)
	chosen := slices.DeleteFunc(cases, func(c plays.Row) bool { return !match.MatchString(c.Name) || *quick && !c.Quick })
	must.Be(len(chosen) > 0, "no case has such a name: see the tables in internal/plays")
	dir := stage.Enter(ctx, stage.All)
	var rows []*row
	for _, c := range chosen {
		if lacking := peers.Missing(&c); len(lacking) > 0 {
			fmt.Fprintf(os.Stderr, "lab: %s is skipped: no %s\n", c.Name, strings.Join(lacking, ", "))
		} else {
			rows = append(rows, &row{Row: &c})
		}
	}
	// Servers that run as another user may not see the folders of the programs.
	stage.Shell(`cp "$1" "$3/lameduck"; cp "$2" "$3/lab"`, lameduck, fmt.Sprintf("/proc/%d/exe", os.Getpid()), dir)
	sch := &scheduler{dir: dir, repeat: *repeat}
	if *quick {
		sch.repeat, sch.retry = 1, 4
	}
	sch.play(ctx, rows)
	must.Do(ctx.Err())
	print(rows, *quick)
}

// Play plays one trial: args are the name of a case, and a folder.
func Play(args []string) {
	c := plays.Find(args[0])
	must.Be(c != nil, "no case %q", args[0])
	t := &trial{c: c, dir: args[1]}
	machine := &stalls{}
	go machine.watch(c)
	err := t.play()
	wrong := t.conclude()
	t.Stalled = machine.longest(c, t.term.Add(t.Signal))
	if err = cmp.Or(err, wrong); err != nil {
		t.Err = err.Error()
	}
	must.Do(json.NewEncoder(os.Stdout).Encode(t.result))
}

const (
	ms = time.Millisecond
	s  = time.Second
)

// seconds writes a moment relative to TERM.
func seconds(d time.Duration) string { return fmt.Sprintf("%+.1f s", d.Seconds()) }
