//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// The Go runtime must not hold files of the cgroup open: one processor is all that lameduck
// uses.

package main

import (
	"runtime/debug"

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
	return "lameduck version " + recordedVersion() + ", a plain build (see docs/limits.md)\n"
}

// recordedVersion returns the version of the module or else the revision of the repository,
// as far as the go command has recorded them.
func recordedVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return version
}
