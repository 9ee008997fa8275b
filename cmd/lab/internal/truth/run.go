package truth

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/lameduck-init/lameduck/cmd/lab/netns"
)

// Roles are the programs of the table, by the first argument.
var Roles = map[string]func(args []string) error{"serve": serve, "play": playTrial}

// Run plays the cases of args, and writes the table to out.
func Run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.list {
		for _, c := range o.cases {
			fmt.Fprintln(out, c.name)
		}
		return nil
	}
	// As PID 1, so that no process outlives the table.
	dir, err := netns.Namespaces{Flags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Env: "LAMEDUCK_TRUTH_INSIDE"}.Enter()
	if err != nil {
		return err
	}
	return runAll(ctx, o, dir, out)
}

// playTrial plays one trial: args are the name of a case, lameduck and a folder.
func playTrial(args []string) error {
	c := find(args[0])
	if c == nil {
		return fmt.Errorf("no case %q", args[0])
	}
	if err := netns.MountProc(); err != nil {
		return err
	}
	t := newTrial(c)
	t.lameduck, t.dir = args[1], args[2]
	watch := watchStalls(c.precise)
	err := t.play()
	r := t.result()
	r.Stalled = watch.longest(t.term.Add(r.Signal))
	if err != nil {
		r.Err = err.Error()
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}
