package shim

import (
	"slices"
	"strings"
)

// Preset is what a known server expects of who stops it: plain values, to be
// read beside the server's manual. The table of them is in presets.go.
type Preset struct {
	Name     string
	Aliases  []string
	Programs []string // base names of the executables and scripts that it is known by

	StopSignals []Signal  // what its images set as STOPSIGNAL, TERM aside
	Schedule    string    // as for --stop-schedule; "" passes the trigger on; never KILL
	Exit        []ExitMap // applies after a stop sequence only
	Caveats     []Caveat

	Says   string // what the server does on it
	Source string // where that is written
	Proven bool   // our tests do it to the real server
}

// What the durations in the table have to fit: whatever the grace period, from
// 5 s on, R + 1s is more than 2 s. So no preset waits longer between its steps,
// and none cuts what the server itself would let end.

// Presets are all there are, for people to read.
func Presets() []Preset { return slices.Clone(presets) }

// presetNamed finds a preset by its name or an alias, in any case.
func presetNamed(name string) (*Preset, bool) {
	name = strings.ToLower(name)
	for i := range presets {
		if p := &presets[i]; p.Name == name || slices.Contains(p.Aliases, name) {
			return p, true
		}
	}
	return nil, false
}

// presetOf finds a preset by a program's base name.
func presetOf(program string) *Preset {
	for i := range presets {
		if p := &presets[i]; slices.Contains(p.Programs, program) {
			return p
		}
	}
	return nil
}
