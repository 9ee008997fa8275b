//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// The Go runtime must not hold files of the cgroup open: one processor is all that lameduck
// uses.

// Command lameduck is a container entrypoint. lameduck runs a command, reaps orphans,
// forwards signals, and keeps the command serving for a while when the orchestrator says
// stop. See --help, and the README.
package main

import (
	"os"

	"github.com/lameduck-init/lameduck/shim"
)

// Signals are caught from shim.Stage on, and in a build with the entry point from an init:
// see shim/internal/sigcatch.
func main() {
	env := shim.Stage(os.Args)
	os.Exit(lameduck(os.Args[0], os.Args[1:], env))
}
