package main

import (
	"slices"

	"github.com/lameduck-init/lameduck/shim"
)

// wrongPreset reports a preset of a server that is not the command, and a server that drops
// requests at TERM without a preset.
func wrongPreset(c *container, report reporter) {
	l, given := &c.entry, c.entry.outline
	if given == nil || len(given.Starts) == 0 || c.Command == nil {
		return
	}
	cfg := l.Config
	cfg.Preset = shim.AutoPreset
	auto, _ := shim.Review(cfg) // no contradiction depends on the preset
	if auto.Preset == nil || len(auto.Starts) == 0 || slices.Equal(auto.Starts[0].Steps, given.Starts[0].Steps) {
		return
	}
	server := auto.Preset.Name
	switch {
	case given.Preset != nil:
		report(l.lineOf("preset"), "the preset is that of %s, but the command is %s; give --preset=%[2]s",
			given.Preset.Name, server)
	case finishing[server] != "" && l.StopSignals == nil && l.Holds() && !c.more:
		report(l.line,
			"after the hold lameduck sends TERM, at which %s drops requests in flight; give --preset=%[1]s, "+
				"unless the image sets LAMEDUCK_PRESET", server)
	}
}

// stopSignal reports a stop signal that does not begin a stop.
func stopSignal(c *container, report reporter) {
	field := "stopSignal"
	if c.pod == nil {
		field = "STOPSIGNAL"
	}
	o, signal := c.entry.outline, c.Lifecycle.StopSignal
	s, err := shim.ParseSignal(signal.text)
	if err == nil && slices.Contains([]string{"KILL", "STOP"}, s.String()) {
		report(signal.line, "%s %v ends the container at once, or never; leave the line out", field, s)
		return
	}
	if err != nil || o == nil || !o.Sequence || c.Command == nil || c.more {
		return
	}
	begins := slices.ContainsFunc(o.Starts, func(start shim.Start) bool { return start.Signal == s })
	presetKnown := o.Preset != nil || c.entry.Preset != shim.AutoPreset
	if !begins && presetKnown {
		report(signal.line,
			"%s %v starts no stop: lameduck forwards it unchanged, at once; give --stop-signal=%v (or "+
				"--rewrite=TERM:%v, a preset that names it), or remove %s", field, s, s, s, field)
	}
}
