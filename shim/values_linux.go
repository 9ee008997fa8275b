package shim

import (
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
)

// Find returns the error with which a run would fail to start the command.
func Find(command, env []string) error { return new(proc.Processes).Find(command, env) }

// PlainBuild reports whether the program was built without the linker flags of the Makefile;
// see docs/install.md.
func PlainBuild() bool { return sigcatch.Plain() }

// IsTerminal reports whether a file descriptor is a terminal.
func IsTerminal(fd int) bool { return proc.IsTerminal(fd) }

// Uncatchable returns why this build never catches a signal, "" if it does.
func Uncatchable(s Signal) string { return sigcatch.Uncatchable(s) }
