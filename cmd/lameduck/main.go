// Command lameduck is a container entrypoint. lameduck runs a command, reaps orphans,
// forwards signals, and keeps the command serving for a while when the orchestrator says
// stop. See --help, and the README.
package main

import (
	"os"

	"github.com/lameduck-init/lameduck/shim"
)

// Signals are caught from the first package's init: shim imports it.
func main() {
	shim.Stage(os.Args)
	os.Exit(lameduck(os.Args[0], os.Args[1:], shim.Environ()))
}
