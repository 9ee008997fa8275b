package stop

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// A container is sometimes stopped by a signal that starts no stop sequence: the
// image's STOPSIGNAL, forwarded like any other signal. If the runtime sent a signal that
// asks servers to finish, a warning names --stop-signal at once: the command may ignore
// the signal, and KILL leaves no time for words. A JVM's thread dump (kill -QUIT 1) comes
// from inside of the container.
//
// If the command ends, the report says that no hold took place. A signal forwarded for
// another reason (to reload, to reopen logs, to dump threads) must not be blamed for a
// later exit.
//
// The cause of an exit is not visible, so endedByForwarded judges by the last
// forwarded signal, the exit status, and the time between the two, at most the grace
// period:
//
//   - Killed by the forwarded signal n, or exited 128+n: the signal was the cause.
//   - Killed by any other signal (a crash, the kernel short of memory, a KILL):
//     the signal was not the cause.
//   - Exited within promptExit: the signal was the cause, whatever the status. An
//     idle server exits at once, and so does a Go program after dumping its
//     goroutines at QUIT, with status 2.
//   - Exited 0 after promptExit: the signal was the cause if servers finish at that
//     signal, since draining takes time; see finishSignals. After any other signal
//     the exit was the command's own.
//   - Exited with an error after promptExit: the signal was not the cause.

// promptExit is the time after a signal in which any exit counts as caused by the
// signal.
const promptExit = time.Second

// finishSignals ask servers and service managers to finish, as in the presets and
// systemd(1). USR1 and USR2 stop some servers but make most others reload or reopen
// their logs. HUP reloads.
var finishSignals = sig.SetOf(sig.TERM, sig.INT, sig.QUIT, sig.WINCH, sig.PWR, sig.RTMin+3)

// nonFatalSignals end no process by default; see signal(7).
var nonFatalSignals = sig.SetOf(sig.CHLD, sig.CONT, sig.URG, sig.WINCH, sig.STOP, sig.TSTP, sig.TTIN, sig.TTOU)

// finishSignals leaves WINCH out on a terminal, where WINCH reports a new size.
func (c *Config) finishSignals() sig.Set {
	if c.StdinIsTerminal {
		return finishSignals.Without(sig.SetOf(sig.WINCH))
	}
	return finishSignals
}

// warnNotHeld returns WarnNotHeld, once for each signal, if e may be the container's stop.
func (m *Machine) warnNotHeld(e Event) []Action {
	mayStop := e.Outside && m.cfg.finishSignals().Has(e.Signal)
	if m.state != Running || !m.cfg.runsSequence() || !mayStop || m.warnedNotHeld.Has(e.Signal) {
		return nil
	}
	m.warnedNotHeld = m.warnedNotHeld.With(e.Signal)
	return []Action{{Verb: WarnNotHeld, Signal: e.Signal}}
}

// noteForwarded records a forwarded signal, which may turn out to end the command. The
// signal arrived as s and was sent as to.
func (m *Machine) noteForwarded(now time.Time, s, to sig.Signal) {
	if !nonFatalSignals.Without(m.cfg.finishSignals()).Has(to) {
		m.record.LastForwarded = LastForwarded{s, to, now}
	}
}

// endedByForwarded reports whether the last forwarded signal ended the command.
func (c *Config) endedByForwarded(r *Record) bool {
	took := r.ExitedAt.Sub(r.ForwardedAt)
	switch {
	case r.Forwarded == 0 || took > c.Grace:
		return false
	case r.Exit.Signal != 0:
		return r.Exit.Signal == r.ForwardedAs
	case r.Exit.Code == 128+int(r.ForwardedAs), took <= promptExit:
		return true
	}
	return r.Exit.Code == 0 && c.finishSignals().Has(r.ForwardedAs)
}
