// Lab is the laboratory: programs that measure lameduck and try lameduck out, each a
// subcommand. No requirement of the programs reaches the product, since the laboratory is
// a module of its own. Run the laboratory from cmd/lab, or with go run -C cmd/lab.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/bench"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/cluster"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/rollout"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/truth"
)

const usage = `usage: lab COMMAND [flags]

  demo LAMEDUCK     one stop under load, bare, with sleeps and with lameduck, without
                    other programs; its picture in the README (-svg)
  rollout LAMEDUCK  rollouts under load behind HAProxy, nginx and kube-proxy: failed
                    requests and stop times, beside tini and sleeps (-quick)
  kept LAMEDUCK     stops of servers whose clients never let go of connections: what
                    --close-idle loses, beside other holds (-n, -run)
  bench LAMEDUCK    start-up, memory, latency and samples, beside other inits and ss
                    (-footprint, -quick)
  cluster           rollouts in the Kubernetes cluster that KUBECONFIG names
  truth LAMEDUCK    what counts as traffic: cases with real servers and clients, and when
                    each hold should end (-n, -run, -quick)

lab COMMAND -h has the flags. LAMEDUCK is the program that make build leaves.
`

// A command or a role fails by package must.
var commands = map[string]func(ctx context.Context, args []string){
	"rollout": rollout.Run,
	"kept":    truth.Kept,
	"bench":   bench.Run,
	"cluster": func(ctx context.Context, args []string) { cluster.Run(ctx, args, os.Stdout) },
	"demo":    rollout.Demo,
	"truth":   truth.Run,
}

// roles are the programs that the commands start. They have their own handlers of signals: a server
// shall die on TERM.
var roles = map[string]func(args []string){
	"serve": peers.Serve,
	"play":  truth.Play,
}

func main() {
	err := must.Try(func() { run(os.Args[1:]) })
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(args []string) {
	if len(args) == 0 || slices.Contains([]string{"help", "-h", "--help"}, args[0]) {
		fmt.Print(usage)
		return
	}
	if role := roles[args[0]]; role != nil {
		role(args[1:])
		return
	}
	command := commands[args[0]]
	must.Be(command != nil, "unknown command %q: see lab help", args[0])
	// PIPE does not end the command: a client may write to a server that has gone, and when the reader of
	// the output goes away, namespaces and files remain to be cleaned up.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	command(ctx, args[1:])
}
