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
		l.Preset == shim.AutoPreset || slices.Equal(given.Starts[0].Steps, s.server.Schedule) {
		return
	}
	switch server := s.server.Name; {
	case given.Preset != nil:
		report(l.lineOf("preset"), "the preset is that of %s, but the command is %s; give --preset=%[2]s",
			given.Preset.Name, server)
	case dropsAtTERM(s.server) && l.StopSignals == nil && l.Holds() && !s.isOpen() && s.starts():
		report(l.line, "after the hold lameduck sends TERM, at which %s drops requests in flight; give "+
			"--preset=%[1]s, unless the image sets LAMEDUCK_PRESET", server)
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
	inherits := given.line == 0 && s.signal != 0 && s.signal != shim.TERM
	switch {
	case slices.Contains([]string{"KILL", "STOP"}, s.signal.String()):
		report(given.line, "%s %v ends the container at once, or never; leave the line out", field, s.signal)
	case s.call != nil:
		startsNothing(s, report, field)
	case inherits && s.server != nil && s.last != nil && !s.stays(s.last):
		// What a node does at a signal is the program's.
		if finishes := s.server.Schedule[0].Signal; s.signal != finishes && s.server.Name != "node" {
			report(s.last.program.line, "the stop signal of %s is %v, at which %s does not finish; write %s SIG%v",
				s.Image, s.signal, s.server.Name, field, finishes)
		}
	}
}

// startsNothing reports a stop signal that begins no stop of lameduck.
func startsNothing(s *stop, report reporter, field string) {
	o, l, given := s.entry.outline, &s.entry, s.Lifecycle.StopSignal
	if o == nil || !o.Sequence || len(l.command) == 0 || s.Command == nil || s.isOpen() || s.starts() {
		return
	}
	isPHP := s.last != nil && s.last.program.base() == "php" // has no preset
	switch {
	case o.Preset == nil && l.Preset == shim.AutoPreset && !isPHP: // it may be found later
	case given.line > 0:
		report(given.line, "%s %v starts no stop: lameduck forwards it unchanged, at once; give --stop-signal=%[2]v (or "+
			"--rewrite=TERM:%[2]v, a preset that names it), or remove %[1]s", field, s.signal)
	case s.signal != shim.TERM && (o.Preset == nil || s.server == nil): // else the preset is wrong
		remedy := fmt.Sprintf("give --stop-signal=%v --rewrite=%[1]v:TERM", s.signal)
		if s.pod == nil {
			remedy = "write STOPSIGNAL SIGTERM, or " + remedy
		}
		if dropsAtTERM(s.server) && s.server.Schedule[0].Signal == s.signal {
			remedy = "give --preset=" + s.server.Name
		}
		report(l.line, "the stop signal of %s is %v, which starts no stop: lameduck forwards it unchanged, at once; "+
			"%s", s.Image, s.signal, remedy)
	}
}
