package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Where the program and its files are, from cmd/lab, where it runs.
const (
	here     = "internal/cluster/"
	examples = "../../docs/examples/kubernetes/"
)

// options is the command line.
type options struct {
	only           *regexp.Regexp
	rate, rollouts int
}

// cluster is the cluster that KUBECONFIG names.
type cluster struct {
	work      string // a folder for cluster.sh
	namespace string
}

func parse(args []string) (*options, error) {
	o := &options{only: regexp.MustCompile("")}
	f := flag.NewFlagSet("KUBECONFIG=FILE E2E_LOAD=COMMAND lab cluster", flag.ContinueOnError)
	f.TextVar(o.only, "run", o.only,
		"only the rows whose names, 'NAME, new connections' or 'NAME, kept connections', match this regular expression")
	f.IntVar(&o.rate, "rate", 200, "requests a second")
	f.IntVar(&o.rollouts, "rollouts", 3, "rollouts of a row with kept connections and a server that TERM kills, "+
		"whose losses are compared; the others have one")
	return o, f.Parse(args)
}

// Run plays the rows that args choose, and writes the table to out. Without a cluster there
// is nothing to do.
func Run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	c := &cluster{}
	c.work, err = os.MkdirTemp("", "lab-cluster-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(c.work)
	if os.Getenv("KUBECONFIG") == "" {
		fmt.Fprintln(out, "cluster: skipped: KUBECONFIG names no cluster")
		return nil
	}
	version, err := c.script(ctx, "version")
	if err != nil {
		fmt.Fprintln(out, "cluster: skipped: the cluster does not answer:", err)
		return nil
	}
	if _, err := c.script(ctx, "images"); err != nil {
		return err
	}
	c.namespace, err = c.script(ctx, "open")
	if c.namespace == "" {
		return err
	}
	began, rows := time.Now(), []row(nil)
	if err == nil {
		rows, err = c.playAll(ctx, o)
	}
	_, unclosed := c.script(context.WithoutCancel(ctx), "close")
	if len(rows) > 0 {
		fmt.Fprintf(out, "\nKubernetes %s, %d requests/s, %d or 1 rollouts a row, of 3 replicas (manifests: 2); %.0f s\n",
			version, o.rate, o.rollouts, time.Since(began).Seconds())
		printTable(out, rows)
	}
	return errors.Join(err, unclosed, judge(out, rows))
}

// script runs a part of cluster.sh and returns what the part prints.
func (c *cluster) script(ctx context.Context, part string, env ...string) (string, error) {
	cmd := exec.CommandContext(ctx, here+"cluster.sh", part)
	cmd.Env = append(append(os.Environ(), "WORK="+c.work, "NAMESPACE="+c.namespace), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it cleans up
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", part, err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), err
}
