package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// options is the command line.
type options struct {
	anatomy  bool
	svg      string // the file to draw, or ""
	json     string // the file for the figures, or ""
	from     string // figures to draw in place of a new run, or ""
	lameduck string
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == "serve" {
		return serve(args[1:])
	}
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	if o.anatomy {
		return o.runAnatomy(ctx, out)
	}
	return o.runDemo(ctx, out)
}

func parse(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("lab demo", flag.ContinueOnError)
	f.BoolVar(&o.anatomy, "anatomy", false, "one stop of lameduck alone, with slow requests, a floor and a graceful server")
	f.StringVar(&o.svg, "svg", "", "draw the run into this file")
	f.StringVar(&o.json, "json", "", "write the figures of the run to this file")
	f.StringVar(&o.from, "from", "", "draw the figures of this file; LAMEDUCK is not needed")
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: lab demo [flags] LAMEDUCK")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if o.from != "" && f.NArg() == 0 {
		return o, nil
	}
	if f.NArg() != 1 {
		return nil, errors.New("give one argument, the built lameduck; see lab demo -help")
	}
	var err error
	o.lameduck, err = filepath.Abs(f.Arg(0))
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(o.lameduck)
	return o, err
}
