package plan

import (
	"slices"

	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// onStopSignal returns the signal that --on-stop names, as Signal.String spells it; 0: --on-stop
// names a program, or is not given.
func (c *Config) onStopSignal() sig.Signal {
	if len(c.OnStop) != 1 {
		return 0
	}
	s, err := sig.Parse(c.OnStop[0])
	if err != nil || s.String() != c.OnStop[0] {
		return 0
	}
	return s
}

// Request returns the request that --on-stop sends; nil: none.
func (c *Config) Request() (r *check.Request) {
	if len(c.OnStop) == 1 && check.IsRequest(c.OnStop[0]) {
		r, _ = check.ParseRequest(c.OnStop[0])
	}
	return r
}

// onStopRuns reports whether --on-stop runs a program, or sends a request.
func (c *Config) onStopRuns() bool { return len(c.OnStop) > 0 && c.onStopSignal() == 0 }

// ending are the signals by which programs end whatever their preset.
var ending = sig.SetOf(sig.TERM, sig.INT, sig.QUIT, sig.KILL, sig.STOP)

// tell returns the signal of --on-stop, unless it would stop the command when the hold begins, which is
// an error. If it would do so only because of the server that auto has recognized, it is not sent, and
// a warning says so, since the command runs by then.
func (p *Plan) tell() (s sig.Signal, warning string, err error) {
	s = p.onStopSignal()
	sends := func(steps stop.Schedule) bool { return slices.Contains(steps, stop.Step{Signal: s}) }
	ends := ending.Has(s) || sends(p.Stop.Preset)
	for _, start := range p.starts() {
		ends = ends || sends(p.Stop.ScheduleFor(start))
	}
	const remedy = "give the signal at which the server tells its clients to leave, or leave it out"
	switch {
	case s == 0 || !ends:
		return s, "", nil
	case p.Config.Preset == preset.Auto && p.Server != nil: // New has found no conflict without the server
		return 0, Flag("on-stop", s) + " is not sent, since it stops " + p.Server.Name + ": " + remedy, nil
	}
	return 0, "", fault("on-stop", remedy, "%s would stop the command when the hold begins", Flag("on-stop", s))
}

// Told names the process that gets the signal of --on-stop.
func (p *Plan) Told() string {
	switch {
	case p.Hook:
		return "PID 1"
	case p.Group || p.Session:
		return "the command's process group"
	}
	return "the command"
}
