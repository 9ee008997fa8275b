package rollout

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/netns"
)

// Roles are the programs of the experiment, by the first argument.
var Roles = map[string]func(args []string) error{"stage": stage, "serve": serve}

// Run runs the experiment of args, and writes the tables to out.
func Run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.from != "" {
		return o.rewrite(out)
	}
	if os.Getenv(inside) == "" {
		return enter()
	}
	r, err := openRoom(os.Getenv(inside))
	if err != nil {
		return err
	}
	return experiment(ctx, o, r, out)
}

// inside is set in the process in new namespaces; the value is the
// folder for temporary files.
const inside = "LAMEDUCK_LAB_INSIDE"

// enter runs the program again in new namespaces, as PID 1: the experiment leaves the
// machine's network alone, and no process outlives the laboratory.
func enter() error {
	dir, err := os.MkdirTemp(os.Getenv("GOTMPDIR"), "lameduck-lab-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // nginx's workers run as another user
		return err
	}
	spaces := netns.Namespaces{Flags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Env: inside + "=" + dir, KeepUser: true}
	code, err := spaces.Reenter()
	if code != 0 {
		os.RemoveAll(dir)
		os.Exit(code) // the process inside has printed why
	}
	return err
}

// experiment runs every trial, and writes and judges the findings.
func experiment(ctx context.Context, o *options, r *room, out io.Writer) error {
	began := time.Now()
	trials := plan(o)
	bar := newProgress(os.Stderr, len(trials))
	err := runAll(ctx, o, r, trials, bar)
	bar.close()
	if err != nil {
		return err
	}
	found := summarize(o, trials)
	found.Seconds = time.Since(began).Seconds()
	printTables(out, found)
	if err := o.write(found, trials); err != nil {
		return err
	}
	return verdict(out, found)
}

// verdict prints the claims, and for each whether the claim holds.
func verdict(out io.Writer, found *findings) error {
	broken := 0
	for _, c := range judge(found) {
		mark := "ok    "
		if !c.holds {
			mark = "BROKEN"
			broken++
		}
		fmt.Fprintf(out, "%s  %s\n", mark, c.text)
	}
	if broken > 0 {
		return fmt.Errorf("%d promises broken", broken)
	}
	return nil
}
