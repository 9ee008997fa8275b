package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
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
func Presets() []Preset { return slices.Clone(presets()) }

// AutoPreset asks for the preset of whatever program runs when a signal comes.
const AutoPreset = "auto"

// ParsePreset reads a preset's name or alias, or AutoPreset.
func ParsePreset(text string) (string, error) {
	if strings.ToLower(text) == AutoPreset {
		return AutoPreset, nil
	}
	p, ok := presetNamed(text)
	if !ok {
		return "", fmt.Errorf("there is no preset %q", text)
	}
	return p.Name, nil
}

// presetNamed finds a preset by its name or an alias, in any case.
func presetNamed(name string) (*Preset, bool) {
	name = strings.ToLower(name)
	for i := range presets() {
		if p := &presets()[i]; p.Name == name || slices.Contains(p.Aliases, name) {
			return p, true
		}
	}
	return nil, false
}

// presetOf finds a preset by a program's base name.
func presetOf(program string) *Preset {
	for i := range presets() {
		if p := &presets()[i]; slices.Contains(p.Programs, program) {
			return p
		}
	}
	return nil
}

// steps are what the preset sends.
func (p *Preset) steps() stop.Schedule {
	if p.Schedule == "" {
		return nil
	}
	steps, err := ParseSchedule(p.Schedule)
	if err != nil {
		panic(err) // a test reads them all
	}
	return steps
}

// presetSignals are the signals that any preset names, TERM among them. At another one
// nobody asks what the command is.
func presetSignals() sig.Set {
	set := sig.SetOf(sig.TERM)
	for i := range presets() {
		for _, s := range presets()[i].StopSignals {
			set = set.With(s)
		}
		for _, step := range presets()[i].steps() {
			if step.Signal != 0 {
				set = set.With(step.Signal)
			}
		}
	}
	return set
}

// setPreset resolves the preset, as far as that can be done before the start, and
// says what is to be warned of.
func (p *plan) setPreset(c *Config) error {
	if c.Preset == "" {
		return nil
	}
	p.stop.SequenceWithoutHold = true
	found, ok := presetNamed(c.Preset)
	if p.auto = c.Preset == AutoPreset; p.auto {
		found = foreseen(c.Command)
	} else if !ok {
		return c.errorf("--preset=%s: there is no such preset", c.Preset)
	} else {
		p.stop.Preset = p.adopt(found)
		p.stop.StopSignals |= p.stop.Preset.StopSignals
	}
	if found == nil {
		return nil
	}
	scene := Scene{Argv: c.Command, Env: c.Env, Adaptive: c.Until != Elapsed, Read: readAll}
	for _, says := range found.CaveatsIn(scene) {
		p.warn("preset %s: %s", found.Name, c.Spelling.In(says))
	}
	return nil
}

// adopt makes a preset the plan's, and is what the machine is to know of it.
func (p *plan) adopt(found *Preset) stop.Preset {
	p.preset, p.auto = found, false
	return stop.Preset{StopSignals: p.stops(sig.SetOf(found.StopSignals...)), Steps: found.steps()}
}

// foreseen is what a command will probably turn out to be: itself, or what its
// entrypoint script is given to execute.
func foreseen(command []string) *Preset {
	for i := range min(len(command), 2) {
		if p := recognise("", command[i:]); p != nil {
			return p
		}
	}
	return nil
}

// readAll is the text of the files that a pattern finds, as far as they can be
// read.
func readAll(pattern string) (text string) {
	paths, _ := filepath.Glob(pattern)
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			more, _ := os.ReadFile(path)
			text += string(more) + "\n"
		}
	}
	return text
}
