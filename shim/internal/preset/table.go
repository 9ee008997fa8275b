package preset

import (
	_ "embed" // for presets.txt
	"strconv"
	"strings"
	"sync"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// text has the presets in the order of the documentation, each a block of lines with a field of Preset.
//
//go:embed presets.txt
var text string

// All returns the presets in the order of the documentation. The first call reads them: most runs do
// without a preset.
var All = sync.OnceValue(func() (list []Preset) {
	for block := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n\n") {
		var p Preset
		for line := range strings.SplitSeq(block, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			p.set(name, value)
		}
		list = append(list, p)
	}
	return list
})

// set sets a field. Tests read all of the text, so that the product meets no error.
func (p *Preset) set(name, value string) {
	switch name {
	case "name":
		p.Name = value
	case "aliases":
		p.Aliases = strings.Fields(value)
	case "programs":
		p.Programs = strings.Fields(value)
	case "stopsignal":
		s, _ := sig.Parse(value)
		p.StopSignals = []sig.Signal{s}
	case "schedule":
		p.Schedule, _ = stop.ParseSchedule(value)
	case "exit": // 0 is reported: the server ends by its own signal after a graceful stop
		code, _ := strconv.Atoi(value)
		p.Exit = []ExitCode{{From: code, Stopped: true}}
	case "says":
		p.Says = value
	case "caveat":
		p.Caveat = value
	case "source":
		p.Source = value
	case "kept":
		p.Kept = value
	case "marks":
		p.Proven = strings.Contains(value, "proven")
		p.GroupCuts = strings.Contains(value, "group-cuts")
		p.ClosesKept = strings.Contains(value, "closes-kept")
	}
}
