package truth

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"

	"github.com/lameduck-init/lameduck/internal/plays"
)

// Roles are the programs of the tables, by the first argument.
var Roles = map[string]func(args []string) error{"serve": peers.Serve, "play": playTrial}

// Run plays the cases of args, and writes to out when the holds have ended.
func Run(ctx context.Context, args []string, out io.Writer) error {
	return run(ctx, "truth", plays.Table(), args, out, printEnded)
}

// Kept plays the cases of lab kept, and writes to out what was lost.
func Kept(ctx context.Context, args []string, out io.Writer) error {
	return run(ctx, "kept", plays.Kept(), args, out, printLost)
}

// printer writes a table, and returns an error if a row is wrong.
type printer func(out io.Writer, rows []*row, quick bool) error

func run(ctx context.Context, command string, cases []plays.Row, args []string, out io.Writer, print printer) error {
	o, err := parse(command, cases, args)
	if err != nil {
		return err
	}
	if o.list {
		for _, c := range o.cases {
			fmt.Fprintln(out, c.Name)
		}
		return nil
	}
	dir, err := stage.Enter(stage.All, false)
	if err != nil {
		return err
	}
	// Servers that run as another user may not see the folders of the programs.
	err = stage.Shell(`cp "$1" "$3/lameduck"; cp "$2" "$3/lab"`, o.lameduck, fmt.Sprintf("/proc/%d/exe", os.Getpid()), dir)
	if err != nil {
		return err
	}
	rows := (&scheduler{o: &o, dir: dir}).playAll(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	return print(out, rows, o.quick)
}

// playTrial plays one trial: args are the name of a case, and a folder.
func playTrial(args []string) error {
	c := plays.Find(args[0])
	if c == nil {
		return fmt.Errorf("no case %q", args[0])
	}
	t := &trial{c: c, dir: args[1], links: map[string]func() (peers.Link, error){}}
	machine := &stalls{precise: c.Precise}
	go machine.watch()
	err := t.play()
	r, wrong := t.result()
	r.Stalled = machine.longest(t.term.Add(r.Signal))
	if err = cmp.Or(err, wrong); err != nil {
		r.Err = err.Error()
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
