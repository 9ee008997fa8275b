package stop

import "github.com/lameduck-init/lameduck/shim/internal/sig"

// A container is sometimes stopped by a signal that starts no stop sequence: the
// image's STOPSIGNAL, forwarded like any other signal. If the runtime sent a signal that
// asks servers to finish, a warning names --stop-signal at once: the command may ignore
// the signal, and KILL leaves no time for words. A JVM's thread dump (kill -QUIT 1) comes
// from inside of the container.

// finishSignals ask servers and service managers to finish, as in the presets and
// systemd(1). USR1 and USR2 stop some servers but make most others reload or reopen
// their logs. HUP reloads.
var finishSignals = sig.SetOf(sig.TERM, sig.INT, sig.QUIT, sig.WINCH, sig.PWR, sig.RTMin+3)

// warnNotHeld does WarnNotHeld, once for each signal, if e may be the container's stop.
// On a terminal, WINCH reports a new size.
func (m *Machine) warnNotHeld(e Event) {
	mayStop := e.Outside && finishSignals.Has(e.Signal) && !(m.cfg.StdinIsTerminal && e.Signal == sig.WINCH)
	if m.state == Running && m.cfg.RunsSequence() && mayStop && !m.warnedNotHeld.Has(e.Signal) {
		m.warnedNotHeld = m.warnedNotHeld.With(e.Signal)
		m.doWith(WarnNotHeld, e.Signal)
	}
}
