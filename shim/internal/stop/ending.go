package stop

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// A container is sometimes stopped by a signal that starts no stop sequence: the
// image's STOPSIGNAL, passed on like any other signal. The command ends, no hold
// takes place, and the report names --stop-signal. A signal that was passed on for
// another reason (to reload, to reopen logs, to dump threads) must not be blamed
// for an exit that only happened to follow.
//
// No cause is visible here, so endedBy judges by the last signal passed on, the
// exit status, and the time between the two, which is at most the grace period:
//
//   - Killed by that signal, or exited 128+n for that signal n: the signal was
//     the end.
//   - Killed by any other signal (a crash, the kernel short of memory, a KILL):
//     the signal was not the end.
//   - Exited within promptExit: the signal was the end, whatever the status. A server
//     that is idle exits at once, and so does a Go program that dumps its
//     goroutines at QUIT, with 2.
//   - Exited 0 later than that: the signal was the end if servers take the signal
//     as a request to finish, since draining takes time; see finishSignals. After any
//     other signal the exit was the command's own.
//   - Exited with an error later than that: the signal was not the end.

// promptExit is how soon after a signal an exit is the answer to the signal.
const promptExit = time.Second

// finishSignals are the signals by which servers and service managers are asked to
// finish, as the presets and systemd(1) have them. USR1 and USR2 stop some servers
// but make most others reload or reopen their logs. HUP reloads.
var finishSignals = sig.SetOf(sig.TERM, sig.INT, sig.QUIT, sig.WINCH, sig.PWR, sig.RTMin+3)

// nonFatalSignals are the signals that end no process by default; see signal(7).
var nonFatalSignals = sig.SetOf(sig.CHLD, sig.CONT, sig.URG, sig.WINCH, sig.STOP, sig.TSTP, sig.TTIN, sig.TTOU)

// finishSignals are the signals that count here: on a terminal, WINCH reports a new size.
func (c *Config) finishSignals() sig.Set {
	if c.StdinIsTerminal {
		return finishSignals.Without(sig.SetOf(sig.WINCH))
	}
	return finishSignals
}

// noteForwarded records a signal that may turn out to be the end of the command: s as
// the signal arrived, to as the signal was sent.
func (m *Machine) noteForwarded(now time.Time, s, to sig.Signal) {
	m.previousForwarded = m.record.LastForwarded
	if !nonFatalSignals.Without(m.cfg.finishSignals()).Has(to) {
		m.record.LastForwarded = LastForwarded{s, to, now}
	}
}

// NotForwarded tells the machine that the signal it last passed on was not sent after
// all, since the command does not catch that signal.
func (m *Machine) NotForwarded() { m.record.LastForwarded = m.previousForwarded }

// endedByForwarded reports whether the last signal that was passed on ended the command.
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
