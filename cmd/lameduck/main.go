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

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// Signals are caught from shim.Stage on, and in a build with the entry point from an init:
// see shim/internal/sigcatch.
func main() {
	env := shim.Stage(os.Args)
	os.Exit(lameduck(os.Args[0], os.Args[1:], env))
}

// version is set by the linker; see the Makefile.
var version = "dev"

// versionLine is the answer to --version. A plain build, without the linker flags of the
// Makefile, says so, with the version that the go command has recorded.
func versionLine() string {
	if !shim.PlainBuild() {
		return "lameduck version " + version + "\n"
	}
	return "lameduck version " + cli.RecordedVersion(version) + ", a plain build (see docs/install.md)\n"
}
