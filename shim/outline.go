package shim

import (
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Outline is what would happen at a stop: the plan of a configuration as plain values.
// Explain puts it into words, and the linter of manifests judges its values.
type Outline struct {
	*plan

	Preset   *Preset       // named, or probably found by auto; nil: none, or unknown before the start
	Starts   []Start       // the signals that begin a stop, TERM first
	Sequence bool          // a stop is more than a signal that is passed on at once
	MaxHold  time.Duration // the longest hold; 0: a stop begins without a hold

	Grace        time.Duration // given or assumed
	GraceAssumed bool
}

// Start is a signal that begins a stop, and the steps after the hold.
type Start struct {
	Signal Signal
	Steps  Schedule
}

// NewOutline returns the outline of a configuration. An error is a contradiction in the
// configuration that Run would find as well. NewOutline does not look at the machine
// (directories, ports, programs, a terminal), because pod specs are reviewed elsewhere.
func NewOutline(cfg Config) (*Outline, error) {
	p, err := newPlan(&cfg, false, true)
	if err != nil {
		return nil, err
	}
	if likely := preset.MatchCommand(cfg.Command); likely != nil && cfg.Preset == AutoPreset {
		p.usePreset(likely)
	}
	o := &Outline{
		plan:         p,
		Preset:       p.server,
		Sequence:     p.stop.RunsSequence(),
		MaxHold:      p.stop.Gate.MaxHold(),
		Grace:        p.stop.Grace,
		GraceAssumed: p.terms.GraceAssumed,
	}
	others := slices.Collect(p.stop.StopSignals.Without(sig.SetOf(sig.TERM)).All)
	for _, s := range append([]Signal{sig.TERM}, others...) {
		if _, passes := p.stop.Rewrites.Of(s); passes {
			o.Starts = append(o.Starts, Start{s, p.stop.ScheduleFor(s)})
		}
	}
	return o, nil
}
