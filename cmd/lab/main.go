package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/systems"
)

func main() {
	var err error
	switch {
	case len(os.Args) > 2 && os.Args[1] == "stage":
		err = stage(os.Args[2], os.Args[3:])
	case len(os.Args) > 3 && os.Args[1] == "serve":
		err = serve(os.Args[2], os.Args[3])
	case len(os.Args) > 1 && os.Args[1] == "systems":
		err = bootSystems(os.Args[2:])
	default:
		err = lab(os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// bootSystems boots other kernels and processors. An interrupt ends QEMU.
func bootSystems(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return systems.Run(ctx, args, os.Stdout)
}

// lab is the whole experiment, begun from outside.
func lab(args []string) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if os.Getenv(inside) == "" && !o.demo {
		return enter()
	}
	// PIPE: where what we print is cut short there is still something to clean up.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	if o.demo {
		return demo(ctx, o)
	}
	r, err := openRoom(os.Getenv(inside))
	if err != nil {
		return err
	}
	return experiment(ctx, o, r)
}

// experiment runs every trial, writes what was found and judges it.
func experiment(ctx context.Context, o *options, r *room) error {
	began := time.Now()
	trials := plan(o)
	bar := newProgress(os.Stderr, len(trials))
	err := runAll(ctx, o, r, trials, bar)
	bar.close()
	if err != nil {
		return err
	}
	found := summarise(o, trials)
	found.Seconds = time.Since(began).Seconds()
	printTables(os.Stdout, found)
	if err := o.write(found, trials); err != nil {
		return err
	}
	return verdict(os.Stdout, found)
}

// verdict prints what was promised and whether it holds.
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
