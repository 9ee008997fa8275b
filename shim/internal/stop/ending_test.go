package stop

import (
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// TestNoHold: the report says that no hold took place only where the signal that
// was passed on was the end of the command.
func TestNoHold(t *testing.T) {
	const s = time.Second
	code := func(n int) Event { return Event{Kind: CommandExited, Code: n} }
	killed := func(by sig.Signal) Event { return Event{Kind: CommandExited, Signal: by} }
	for name, c := range map[string]struct {
		passed []sig.Signal
		after  time.Duration
		exit   Event
		want   sig.Signal // after which no hold took place; 0: nothing is said
	}{
		"no signal":                        {nil, 0, code(0), 0},
		"killed by the signal":             {[]sig.Signal{sig.HUP}, 5 * s, killed(sig.HUP), sig.HUP},
		"killed by what was sent instead":  {[]sig.Signal{sig.USR2}, 5 * s, killed(sig.QUIT), sig.USR2},
		"128+n":                            {[]sig.Signal{sig.HUP}, 5 * s, code(129), sig.HUP},
		"crash":                            {[]sig.Signal{sig.QUIT}, s / 2, killed(sig.Signal(11)), 0},
		"out of memory":                    {[]sig.Signal{sig.QUIT}, 5 * s, killed(sig.KILL), 0},
		"drained":                          {[]sig.Signal{sig.QUIT}, 8 * s, code(0), sig.QUIT},
		"drained, httpd":                   {[]sig.Signal{sig.WINCH}, 8 * s, code(0), sig.WINCH},
		"drained, systemd":                 {[]sig.Signal{sig.RTMin + 3}, 8 * s, code(0), sig.RTMin + 3},
		"drained, and continued meanwhile": {[]sig.Signal{sig.QUIT, sig.CONT, sig.URG}, 8 * s, code(0), sig.QUIT},
		"drained for too long":             {[]sig.Signal{sig.QUIT}, 11 * s, code(0), 0},
		"thread dump, then an error":       {[]sig.Signal{sig.QUIT}, 8 * s, code(3), 0},
		"goroutine dump":                   {[]sig.Signal{sig.QUIT}, s / 10, code(2), sig.QUIT},
		"idle haproxy":                     {[]sig.Signal{sig.USR1}, s / 10, code(0), sig.USR1},
		"reload, then an error":            {[]sig.Signal{sig.HUP}, 8 * s, code(1), 0},
		"reload, then a normal end":        {[]sig.Signal{sig.HUP}, 8 * s, code(0), 0},
		"logs reopened, then a normal end": {[]sig.Signal{sig.USR1}, 5 * s, code(0), 0},
		"quit, then reload":                {[]sig.Signal{sig.QUIT, sig.HUP}, 5 * s, code(0), 0},
		"continued":                        {[]sig.Signal{sig.CONT}, s / 10, code(0), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := noHold(Config{}, c.passed, c.after, c.exit); got != c.want {
				t.Errorf("no hold took place after %v, want %v", got, c.want)
			}
		})
	}
	resized := noHold(Config{StdinIsTerminal: true}, []sig.Signal{sig.WINCH}, s/10, code(0))
	if resized != 0 {
		t.Errorf("a terminal of another size: no hold took place after %v", resized)
	}
}

// noHold is the signal that a machine with a hold blames for the exit, 0 for none:
// the signals arrive while the command runs, and the exit follows the last one.
func noHold(cfg Config, passed []sig.Signal, after time.Duration, exit Event) sig.Signal {
	cfg.StopSignals, cfg.Gate, cfg.Grace = sig.SetOf(sig.TERM), Gate{Floor: time.Second}, 10*time.Second
	cfg.Rewrites.Add(sig.Rewrite{From: sig.USR2, To: sig.QUIT})
	m, now := New(cfg), epoch
	m.Handle(now, Event{Kind: CommandStarted})
	for _, s := range passed {
		m.Handle(now, Event{Kind: SignalArrived, Signal: s})
	}
	for _, a := range m.Handle(now.Add(after), exit) {
		if a.Verb == NoteHoldMissed {
			return a.Signal
		}
	}
	return 0
}
