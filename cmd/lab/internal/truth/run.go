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

// inside is set in the process in new namespaces; the value is the
// folder for temporary files.
const inside = "LAMEDUCK_TRUTH_INSIDE"

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
	dir := os.Getenv(inside)
	if dir == "" {
		return enter()
	}
	if err := netns.MountProc(); err != nil {
		return err
	}
	return runAll(ctx, o, dir, out)
}

// enter runs the program again as PID 1 of new namespaces, so that no process outlives
// the table.
func enter() error {
	dir, err := os.MkdirTemp(os.Getenv("GOTMPDIR"), "lameduck-truth-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // some servers run as another user
		return err
	}
	spaces := netns.Namespaces{Flags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Env: inside + "=" + dir}
	code, err := spaces.Reenter()
	if code != 0 {
		os.RemoveAll(dir)
		os.Exit(code) // the process inside has printed why
	}
	return err
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
