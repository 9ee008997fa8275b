package truth

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"

	"github.com/lameduck-init/lameduck/internal/plays"
)

// Roles are the programs of the table, by the first argument.
var Roles = map[string]func(args []string) error{"serve": peers.Serve, "play": playTrial}

// Run plays the cases of args, and writes the table to out.
func Run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
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
	rows := (&scheduler{o: &o, dir: dir}).playAll(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	return print(out, rows, o.quick)
}

// playTrial plays one trial: args are the name of a case, lameduck and a folder.
func playTrial(args []string) error {
	c := plays.Find(args[0])
	if c == nil {
		return fmt.Errorf("no case %q", args[0])
	}
	t := newTrial(c)
	t.lameduck, t.dir = args[1], args[2]
	machine := &stalls{precise: c.Precise}
	go machine.watch()
	err := t.play()
	r := t.result()
	r.Stalled = machine.longest(t.term.Add(r.Signal))
	if err != nil {
		r.Err = err.Error()
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
