package stop

import (
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

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
