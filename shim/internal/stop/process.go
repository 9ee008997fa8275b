package stop

import (
	"slices"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Process is a process below lameduck, as one look shows it.
type Process struct {
	PID           int
	Start         uint64 // tells it from a later one with the same PID
	Parent, Group int
	Stopped       bool       // by a signal, and handles no other until continued
	Program       string     // base name of its executable; "": not known
	Server        string     // the known server that it is; "": none
	Asks          sig.Signal // asks it to end; 0 of a program that is no known server: not asked so far
	Handled       sig.Set    // it has handlers for them, or waits for them
	Awaited       sig.Set    // it waits for them, without handlers
	Ignored       sig.Set
}

// id identifies a process.
type id struct {
	pid   int
	start uint64
}

func (p Process) id() id { return id{p.PID, p.Start} }

// IsShell reports whether a process is a shell, which goes on with its next command when the present one has
// ended.
func (p Process) IsShell() bool { return slices.Contains(shells, p.Program) }

// Accepts reports whether a process handles s, or ignores it, so that s does not end it. A process that was
// not seen is taken to accept everything.
func (p Process) Accepts(s sig.Signal) bool { return p.PID == 0 || (p.Handled | p.Ignored).Has(s) }

var shells = []string{"sh", "ash", "bash", "dash", "ksh", "mksh", "zsh", "busybox"}

// inits pass signals on, and end with their child.
var inits = []string{"tini", "tini-static", "docker-init", "dumb-init", "catatonit", "podman-init"}

// killers pass TERM on, and KILL what they run 2 s later.
var killers = []string{"su", "runuser"}
