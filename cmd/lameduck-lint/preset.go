package main

import (
	"fmt"
	"slices"

	"github.com/lameduck-init/lameduck/shim"
)

// wrongPreset reports a preset of a server that is not the command, and a server that drops
// requests at TERM without a preset.
func wrongPreset(s *stop, report reporter) {
	l, given := &s.entry, s.entry.outline
	if given == nil || len(given.Starts) == 0 || s.Command == nil || s.server == nil || l.Schedule != nil ||
		l.Preset == shim.AutoPreset || slices.Equal(given.Starts[0].Steps, s.server.Steps()) {
		return
	}
	server := s.server.Name
	switch {
	case given.Preset != nil:
		report(l.lineOf("preset"), "the preset is that of %s, but the command is %s; give --preset=%[2]s",
			given.Preset.Name, server)
	case finishing[server] != "" && l.StopSignals == nil && l.Holds() && !s.isOpen() && s.starts():
		report(l.line, "after the hold lameduck sends TERM, at which %s drops requests in flight; give --preset=%[1]s, "+
			"unless the image sets LAMEDUCK_PRESET", server)
	}
}

// starts reports whether the stop signal begins a stop, if both are known.
func (s *stop) starts() bool {
	begins := func(start shim.Start) bool { return start.Signal == s.signal }
	return s.signal == 0 || slices.ContainsFunc(s.entry.outline.Starts, begins)
}

// stopSignal reports a stop signal that does not begin a stop, or at which a server does not finish.
func stopSignal(s *stop, report reporter) {
	field, given := "stopSignal", s.Lifecycle.StopSignal
	if s.pod == nil {
		field = "STOPSIGNAL"
	}
	o, l := s.entry.outline, &s.entry
	presetKnown := o != nil && (o.Preset != nil || l.Preset != shim.AutoPreset || s.last != nil && s.last.program.base() == "php")
	switch {
	case slices.Contains([]string{"KILL", "STOP"}, s.signal.String()):
		report(given.line, "%s %v ends the container at once, or never; leave the line out", field, s.signal)
	case s.call == nil && s.server != nil && given.line == 0 && s.last != nil && !s.stays(s.last):
		// A server may be told another signal on purpose, but not by the base image of another.
		expects := s.server.Steps()[0].Signal
		if s.signal != 0 && s.signal.String() != "TERM" && s.signal != expects && s.server.Name != "node" {
			report(s.last.program.line, "the stop signal of %s is %v, at which %s does not finish; write %s SIG%v", s.Image, s.signal,
				s.server.Name, field, expects)
		}
	case o == nil || !o.Sequence || len(l.command) == 0 || given.line == 0 && s.signal.String() == "TERM" || s.Command == nil || s.isOpen() || !presetKnown || s.starts():
	case given.line > 0:
		report(given.line, "%s %v starts no stop: lameduck forwards it unchanged, at once; give --stop-signal=%v (or "+
			"--rewrite=TERM:%v, a preset that names it), or remove %s", field, s.signal, s.signal, s.signal, field)
	case o.Preset == nil || s.server == nil: // else the preset is wrong
		remedy := fmt.Sprintf("give --stop-signal=%v --rewrite=%[1]v:TERM", s.signal)
		if s.pod == nil {
			remedy = "write STOPSIGNAL SIGTERM, or " + remedy
		}
		if s.server != nil && finishing[s.server.Name] == s.signal.String() {
			remedy = "give --preset=" + s.server.Name
		}
		report(l.line, "the stop signal of %s is %v, which starts no stop: lameduck forwards it unchanged, at once; %s",
			s.Image, s.signal, remedy)
	}
}
