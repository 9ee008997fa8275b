package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// warnings returns the warnings of the caller, and what the user may not expect of the plan.
func (p *Plan) warnings() []string {
	list := slices.Clone(p.Config.Warnings)
	warn := func(applies bool, format string, args ...any) {
		if applies {
			list = append(list, quote.InWords(format, args...))
		}
	}
	for _, r := range p.Rewrites {
		flag := Flag("rewrite", r)
		if r == (Rewrite{From: sig.TERM}) {
			outcome := "the command runs until it is killed"
			for _, other := range p.Starts() {
				outcome = fmt.Sprintf("only %v starts one", other)
			}
			warn(p.Holds() || !p.TERMDropped, "%s drops TERM before it can start a stop: %s", flag, outcome)
		}
		meant := r.From == r.To || slices.Contains(p.Stop.Preset, stop.Step{Signal: r.To}) || p.Schedule != nil
		if r.To != 0 && !meant && p.Server.Name != "" {
			warn(p.Stop.StopSignals.Has(r.From), "%s sends %v instead of %v, the signal of the preset %s: "+
				"leave it out, or give %s if it is meant",
				flag, r.To, p.Stop.Preset[0], p.Server.Name, Flag("stop-schedule", r.To))
		}
	}
	warn(p.Group && p.Server.GroupCuts, "--group (LAMEDUCK_GROUP) sends the signal to the workers of %s as well, "+
		"which lose what they work on: leave it out", p.Server.Name)
	silence := p.Traffic.QuietFor
	warn(p.Until != Elapsed && max(p.QuietFor, p.MaxDelay) == 0 && silence < time.Second,
		"the grace period leaves %s for the hold, and %s of silence ends it: give a longer one, or --quiet-for "+
			"(LAMEDUCK_QUIET_FOR)", p.Stop.Gate.Ceiling, silence)
	warn(p.GraceCaveat != "", "%s: %s", p.GivenTimes(), p.GraceCaveat)
	return list
}

// graceCaveat returns why an assumed grace period is too short for the given times, "" if it is
// not.
func (p *Plan) graceCaveat() string {
	grace := p.Stop.Grace
	if p.AssumedFrom == "" || p.fits(grace) {
		return ""
	}
	outcome := "is too short"
	left := grace - p.Stop.Gate.MaxHold() - p.Schedule.InitialWait() - p.Linger
	if last, _ := p.Schedule.TimeToEnd(p.KillAfter); left > last {
		outcome = quote.InWords("leaves the command %s to stop", left)
	}
	return quote.InWords("the grace period is assumed to be %s, as in %s, which %s: give the real one "+
		"with --grace-period (LAMEDUCK_GRACE_PERIOD)", grace, p.AssumedFrom, outcome)
}
