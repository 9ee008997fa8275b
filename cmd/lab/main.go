// Lab is the laboratory: programs that measure lameduck and try lameduck out, each a
// subcommand. No requirement of the programs reaches the product, since the laboratory is
// a module of its own. Run the laboratory from cmd/lab, or with go run -C cmd/lab.
package main

import (
	"fmt"
	"os"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/bench"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/cluster"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/rollout"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
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

var commands = stage.Commands{
	"rollout": rollout.Run,
	"kept":    truth.Kept,
	"bench":   bench.Run,
	"cluster": cluster.Run,
	"demo":    rollout.Demo,
	"truth":   truth.Run,
}

func main() {
	args := os.Args[1:]
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		fmt.Print(usage)
		return
	}
	stage.Main(args, commands, stage.Roles{"rollout": rollout.Roles, "truth": truth.Roles})
}
