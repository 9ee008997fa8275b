//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// The Go runtime must not hold files of the cgroup open: one processor is all that lameduck
// uses.

package main

import (
	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

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
