package stop

import (
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// TestNoHold: the report says "no hold took place" only if the forwarded signal ended
// the command.
func TestNoHold(t *testing.T) {
	const s = time.Second
	code := func(n int) Event { return Event{Kind: CommandExited, Code: n} }
	killed := func(by sig.Signal) Event { return Event{Kind: CommandExited, Signal: by} }
	for name, c := range map[string]struct {
		forwarded []sig.Signal
		after     time.Duration
		exit      Event
		want      sig.Signal // the signal named in the report; 0: no report
	}{
		"no signal":                        {nil, 0, code(0), 0},
		"killed by the signal":             {[]sig.Signal{sig.HUP}, 5 * s, killed(sig.HUP), sig.HUP},
		"killed by the rewritten signal":   {[]sig.Signal{sig.USR2}, 5 * s, killed(sig.QUIT), sig.USR2},
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
			if got := noHold(Config{}, c.forwarded, c.after, c.exit); got != c.want {
				t.Errorf("no hold after %v, want %v", got, c.want)
			}
		})
	}
	resized := noHold(Config{StdinIsTerminal: true}, []sig.Signal{sig.WINCH}, s/10, code(0))
	if resized != 0 {
		t.Errorf("no hold after %v, which reported a new window size", resized)
	}
}

// noHold forwards signals to a running command, plays the exit some time after, and
// returns the signal that the machine blames for the exit, or 0.
func noHold(cfg Config, forwarded []sig.Signal, after time.Duration, exit Event) sig.Signal {
	cfg.StopSignals = sig.SetOf(sig.TERM)
	cfg.Gate = Gate{Floor: time.Second}
	cfg.Grace = 10 * time.Second
	cfg.Rewrites.Add(sig.Rewrite{From: sig.USR2, To: sig.QUIT})
	m, now := New(cfg), epoch
	m.Handle(now, Event{Kind: CommandStarted})
	for _, s := range forwarded {
		m.Handle(now, Event{Kind: SignalArrived, Signal: s})
	}
	for _, a := range m.Handle(now.Add(after), exit) {
		if a.Verb == NoteHoldMissed {
			return a.Signal
		}
	}
	return 0
}

// TestWarnNotHeld: a signal from outside that may stop the container and begins no stop is
// warned of, once. Other signals and other senders are not.
func TestWarnNotHeld(t *testing.T) {
	held := Config{StopSignals: sig.SetOf(sig.TERM), Gate: Gate{Floor: time.Second, Ceiling: time.Second}, Grace: time.Minute}
	onTerminal := held
	onTerminal.StdinIsTerminal = true
	scheduled := Config{StopSignals: sig.SetOf(sig.TERM), SequenceWithoutHold: true}
	for _, c := range []struct {
		cfg     Config
		inside  bool
		signals []sig.Signal
		want    sig.Set
	}{
		{held, false, []sig.Signal{sig.QUIT, sig.USR1, sig.HUP, sig.QUIT, sig.WINCH, sig.INT, sig.PWR, sig.RTMin + 3, sig.RTMin + 4},
			sig.SetOf(sig.QUIT, sig.WINCH, sig.INT, sig.PWR, sig.RTMin+3)},
		{held, true, []sig.Signal{sig.QUIT, sig.INT}, 0},
		{held, false, []sig.Signal{sig.TERM, sig.QUIT}, 0},
		{onTerminal, false, []sig.Signal{sig.WINCH, sig.QUIT}, sig.SetOf(sig.QUIT)},
		{scheduled, false, []sig.Signal{sig.QUIT}, sig.SetOf(sig.QUIT)},
		{Config{StopSignals: sig.SetOf(sig.TERM)}, false, []sig.Signal{sig.QUIT}, 0},
	} {
		m := New(c.cfg)
		m.Handle(epoch, Event{Kind: CommandStarted})
		var warned sig.Set
		for _, s := range c.signals {
			for _, a := range m.Handle(epoch, Event{Kind: SignalArrived, Signal: s, Outside: !c.inside}) {
				if a.Verb == WarnNotHeld && warned.Has(s) {
					t.Errorf("%v: warned twice", s)
				}
				if a.Verb == WarnNotHeld {
					warned = warned.With(a.Signal)
				}
			}
		}
		if warned != c.want {
			t.Errorf("%v: warned of %v, want %v", c.signals, warned, c.want)
		}
	}
}
