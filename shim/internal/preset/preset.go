package preset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// Auto is the name that asks for the preset of whichever program runs when a signal
// arrives.
const Auto = "auto"

// Preset describes how a known server is stopped gracefully. The fields are plain values,
// to be read beside the server's manual.
//
// Durations in Schedule have to fit into every grace period from 5 s on. The hold leaves
// the reserve and one second, which are together more than 2 s: no preset waits longer
// between its steps, and no preset cuts what the server itself would let end.
type Preset struct {
	Name     string
	Aliases  []string
	Programs []string // base names of the executables and scripts of the server

	StopSignals []sig.Signal  // STOPSIGNAL of the server's images, TERM aside
	Schedule    stop.Schedule // as for --stop-schedule, never with KILL
	Exit        []ExitCode

	Says   string // how the server reacts to Schedule
	Caveat string // what its users have to set, and why; "": nothing
	Source string // the documentation of that reaction
	Proven bool   // the tests stop the real server this way

	GroupCuts bool // the signal, sent to the process group, ends workers in the middle of their work

	// ClosesKept says that at the signal the server closes every kept connection between
	// two requests, as measured by cmd/lab. Kept says what becomes of kept connections,
	// and is empty if nothing was measured.
	ClosesKept bool
	Kept       string
}

// ExitCode reports the exit code From as To.
type ExitCode struct {
	From, To int
	Stopped  bool // only after a stop signal: without one, the code is that of a crash
}

// String returns the code as --exit-code spells it: "143:0", "stop:1:0".
func (m ExitCode) String() string {
	text := fmt.Sprintf("%d:%d", m.From, m.To)
	if m.Stopped {
		text = "stop:" + text
	}
	return text
}

// Named returns the preset with a name or an alias, in any case, or nil.
func Named(name string) *Preset {
	if name == "" { // which leaves the table unread at most starts
		return nil
	}
	name = strings.ToLower(name)
	for i := range All() {
		p := &All()[i]
		if p.Name == name || slices.Contains(p.Aliases, name) {
			return p
		}
	}
	return nil
}

// Stops reports whether any preset names a signal that begins a stop, beside TERM.
func Stops(s sig.Signal) bool {
	return s != 0 && slices.ContainsFunc(All(), func(p Preset) bool { return slices.Contains(p.StopSignals, s) })
}

// ofProgram returns the preset of a program's base name, or nil.
func ofProgram(program string) *Preset {
	for i := range All() {
		if p := &All()[i]; slices.Contains(p.Programs, program) {
			return p
		}
	}
	return nil
}
