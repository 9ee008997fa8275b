package plan

import (
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// Outline is what a plan comes to: Explain puts it into words, and the linter of manifests judges
// its values.
type Outline struct {
	*Plan
	Preset   *preset.Preset // named, or probably found by auto; nil: none, or unknown before the start
	Starts   []Start        // the signals that begin a stop, TERM first
	Sequence bool           // a stop is more than a signal that is passed on at once
	MaxHold  time.Duration  // the longest hold; 0: a stop begins without a hold

	Grace        time.Duration // given or assumed
	GraceAssumed bool
}

// Start is a signal that begins a stop, and the steps after the hold.
type Start struct {
	Signal sig.Signal
	Steps  stop.Schedule
}

// NewOutline returns what a configuration comes to at a place.
func NewOutline(c *Config, at Place) (*Outline, error) {
	p, err := New(c, at)
	if likely := preset.MatchCommand(c.Command); err == nil && c.Preset == preset.Auto && likely != nil {
		p, err = p.Recognized(likely)
	}
	if err != nil {
		return nil, err
	}
	return &Outline{
		Plan:         p,
		Preset:       p.Server,
		Starts:       p.starts(),
		Sequence:     p.Stop.RunsSequence(),
		MaxHold:      p.Stop.Gate.MaxHold(),
		Grace:        p.Stop.Grace,
		GraceAssumed: p.Terms.GraceAssumed,
	}, nil
}

// starts returns the signals that start a stop, TERM first.
func (p *Plan) starts() (list []Start) {
	others := slices.Collect(p.Stop.StopSignals.Without(sig.SetOf(sig.TERM)).All)
	for _, s := range append([]sig.Signal{sig.TERM}, others...) {
		if to, _ := p.Stop.Rewrites.Of(s); to != 0 {
			list = append(list, Start{s, p.Stop.ScheduleFor(s)})
		}
	}
	return list
}
