package cluster

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

// Where the program and its files are, from cmd/lab, where it runs.
const (
	here     = "internal/cluster/"
	examples = "../../docs/examples/kubernetes/"
)

// cluster is the cluster that KUBECONFIG names, and the command line.
type cluster struct {
	only      *regexp.Regexp
	rollouts  int
	work      string // a folder for cluster.sh
	namespace string
}

// Run plays the rows that args choose, and writes what became of them to out. Without a cluster there
// is nothing to do.
func Run(ctx context.Context, args []string, out io.Writer) {
	c := &cluster{only: regexp.MustCompile("")}
	f := flag.NewFlagSet("KUBECONFIG=FILE E2E_LOAD=COMMAND lab cluster", flag.ContinueOnError)
	f.TextVar(c.only, "run", c.only,
		"only the rows whose names, 'NAME, new connections' or 'NAME, kept connections', match this regular expression")
	f.IntVar(&c.rollouts, "rollouts", 3, "rollouts of a row with kept connections and a server that TERM kills, "+
		"whose losses are compared; the others have one")
	must.Do(f.Parse(args))
	if os.Getenv("KUBECONFIG") == "" {
		fmt.Fprintln(out, "cluster: skipped: KUBECONFIG names no cluster")
		return
	}
	c.work = must.Get(os.MkdirTemp("", "lab-cluster-"))
	defer os.RemoveAll(c.work)
	version, err := c.script(ctx, "version")
	if err != nil {
		fmt.Fprintln(out, "cluster: skipped: the cluster does not answer:", err)
		return
	}
	must.Get(c.script(ctx, "images"))
	c.namespace, err = c.script(ctx, "open")
	if c.namespace != "" {
		defer c.script(context.WithoutCancel(ctx), "close")
	}
	must.Do(err)
	fmt.Fprintf(out, "Kubernetes %s, %d requests/s, %d or 1 rollouts a row, of 3 replicas (manifests: 2)\n",
		version, rate, c.rollouts)
	must.Do(judge(out, c.playAll(ctx, out)))
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
