package shim

import (
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Outline is what would happen at a stop: the plan of a configuration as plain values.
// Explain puts an outline into words, and the linter of manifests judges its values.
type Outline struct {
	Config   Config   // as given
	Warnings []string // of the plan

	Preset   *Preset // named, or probably found by auto; nil: none, or unknown before the start
	Starts   []Start // the signals that begin a stop, TERM first
	Sequence bool    // a stop is more than a signal that is passed on at once

	Holds   bool          // a stop begins with a hold
	MaxHold time.Duration // the longest hold
	Silence time.Duration // the silence that an adaptive hold waits for
	MaxKept time.Duration // an end of the hold after the last new connection; 0: only the ceiling

	ExitCodes []ExitCode // to report instead of others

	Grace        time.Duration // given or assumed
	GraceAssumed bool
	GraceNeeded  time.Duration // the grace period, or if it is only assumed the shortest that is long enough
	TimeToStop   time.Duration // what GraceNeeded leaves for the command after the longest hold
}

// Start is a signal that begins a stop, and the steps after the hold.
type Start struct {
	Signal Signal
	Steps  Schedule
}

// ExitCode is an exit code to report instead of the command's own.
type ExitCode struct {
	ExitMap
	AfterStop bool // only after a stop
}

// NewOutline returns the outline of a configuration. An error is a contradiction in the
// configuration that Run would find as well. NewOutline does not look at the machine
// (directories, ports, programs, a terminal), because pod specs are reviewed elsewhere.
func NewOutline(cfg Config) (*Outline, error) {
	p, err := newPlan(&cfg, false, true)
	if err != nil {
		return nil, err
	}
	if likely := preset.MatchCommand(cfg.Command); p.server.auto && likely != nil {
		p.usePreset(likely)
	}
	gate := &p.stop.Gate
	o := &Outline{
		Config:       cfg,
		Warnings:     p.warnings,
		Preset:       p.server.preset,
		Sequence:     gate.Holds() || p.stop.SequenceWithoutHold,
		Holds:        gate.Holds(),
		MaxHold:      gate.MaxHold(),
		Silence:      p.traffic.QuietFor,
		ExitCodes:    p.exitCodes(),
		Grace:        p.stop.Grace,
		GraceAssumed: p.grace.assumed,
		GraceNeeded:  p.stop.Grace,
	}
	for s := range p.stop.StopSignals.All {
		start := Start{s, p.stop.ScheduleFor(s)}
		_, passes := p.stop.Rewrites.Of(s)
		switch {
		case passes && s == sig.TERM:
			o.Starts = slices.Insert(o.Starts, 0, start)
		case passes:
			o.Starts = append(o.Starts, start)
		}
	}
	if longest := traffic.KeptFor * o.Silence; gate.Until == Quiet && longest < gate.Ceiling {
		o.MaxKept = longest
	}
	if o.GraceAssumed {
		o.GraceNeeded = cfg.graceFor(o.MaxHold)
	}
	o.TimeToStop = o.GraceNeeded - o.MaxHold - cfg.Schedule.InitialWait() - cfg.Linger
	return o, nil
}
