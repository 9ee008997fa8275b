package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

// root is the checkout, from cmd/lab, where the program runs; examples has the manifests.
const (
	root     = "../.."
	examples = root + "/docs/examples/kubernetes/"
)

// options is the command line.
type options struct {
	only           *regexp.Regexp
	rate, rollouts int
	new, kept      bool
	messages       bool // print the termination messages
}

// skipped is a reason why there is nothing to do.
type skipped string

func (s skipped) Error() string { return string(s) }

func main() {
	var reason skipped
	err := run(os.Args[1:])
	switch {
	case errors.As(err, &reason):
		fmt.Println("cluster: skipped:", reason)
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func parse(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("lab cluster", flag.ContinueOnError)
	only := f.String("run", "", "only the rows whose names match this pattern")
	f.IntVar(&o.rate, "rate", 200, "requests a second")
	f.IntVar(&o.rollouts, "rollouts", 3, "rollouts a row, of three replicas each; the manifests have two")
	f.BoolVar(&o.new, "new", true, "a load with a new connection for each request")
	f.BoolVar(&o.kept, "kept", true, fmt.Sprintf("a load over %d connections, which the client keeps and uses in turn", pool))
	f.BoolVar(&o.messages, "messages", false, "print the termination message of each stop")
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: KUBECONFIG=FILE E2E_LOAD=COMMAND lab cluster [flags]")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	var err error
	o.only, err = regexp.Compile(*only)
	return o, err
}

func run(args []string) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	// SIGPIPE too: when the reader of the output goes away, the namespace remains to be
	// deleted.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	c.images, err = loadImages(ctx, c.arch)
	if err != nil {
		return err
	}
	if err := c.open(ctx); err != nil {
		return err
	}
	defer func() {
		stop() // a second interrupt ends the program at once
		err = errors.Join(err, c.close())
	}()
	began := time.Now()
	rows, err := c.playAll(ctx, o)
	if len(rows) > 0 {
		fmt.Printf("\nKubernetes %s, %d requests/s, %d rollouts a row, of %d replicas each (the manifests have 2); %.0f s\n", c.version, o.rate, o.rollouts, replicas, time.Since(began).Seconds())
		printTable(os.Stdout, rows)
	}
	return errors.Join(err, judge(os.Stdout, rows))
}
