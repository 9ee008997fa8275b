package stop

import "github.com/lameduck-init/lameduck/shim/internal/sig"

// A container is sometimes stopped by a signal that starts no stop sequence: the
// image's STOPSIGNAL, forwarded like any other signal. If the runtime sent a signal that
// asks servers to finish, a warning names --stop-signal at once: the command may ignore
// the signal, and KILL leaves no time for words. A JVM's thread dump (kill -QUIT 1) comes
// from inside of the container.

// finishSignals ask servers and service managers to finish, as in the presets and
// systemd(1). USR1 is HAProxy's, though it makes most others reopen their logs. HUP and USR2 reload.
var finishSignals = sig.SetOf(sig.TERM, sig.INT, sig.QUIT, sig.WINCH, sig.PWR, sig.USR1, sig.RTMin+3)

// warnNotHeld does WarnNotHeld if e may be the container's stop.
// It is rewritten as to. A rewritten USR1 is no surprise.
func (m *Machine) warnNotHeld(e Event, to sig.Signal) {
	expected := e.Signal == sig.USR1 && to != sig.USR1
	mayStop := e.Outside && finishSignals.Has(e.Signal) && !expected
	if m.state == Running && m.cfg.RunsSequence() && mayStop {
		m.doWith(WarnNotHeld, e.Signal)
	}
}
