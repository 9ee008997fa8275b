package plan

import (
	"slices"

	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// OnStop is what happens when the stop begins. At most one field is set.
type OnStop struct {
	Command []string       // a program to run, and its arguments
	Signal  sig.Signal     // to send to the command
	Request *check.Request // to send
}

// ending are the signals by which programs end whatever their preset.
var ending = sig.SetOf(sig.TERM, sig.INT, sig.QUIT, sig.KILL, sig.STOP)

// tell fills in the signal of --on-stop, unless it would stop the command when the hold begins, which is
// an error. If it would do so only because of the server that auto has recognized, it is not sent, and
// a warning says so, since the command runs by then.
func (p *Plan) tell() error {
	s := p.OnStop.Signal
	steps := slices.Clone(p.Stop.Preset)
	for _, start := range p.Starts() {
		steps = append(steps, p.Stop.ScheduleFor(start)...)
	}
	ends := ending.Has(s) || slices.Contains(steps, stop.Step{Signal: s})
	const remedy = "give the signal at which the server tells its clients to leave, or leave it out"
	switch {
	case s == 0 || !ends:
		p.Stop.Tell = s
	case p.Preset == preset.Auto && p.Server.Name != "": // New has found no conflict without the server
		p.Warnings = append(p.Warnings, Flag("on-stop", s)+" is not sent, since it stops "+p.Server.Name+": "+remedy)
	default:
		return fault("on-stop", remedy, "%s would stop the command when the hold begins", Flag("on-stop", s))
	}
	return nil
}

// Recipient names the process that gets the signal of --on-stop.
func (p *Plan) Recipient() string {
	switch {
	case p.Hook:
		return "PID 1"
	case p.Group || p.Session:
		return "the command's process group"
	}
	return "the command"
}
