package dropin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

var stops = sig.SetOf(sig.TSTP, sig.TTIN, sig.TTOU)

// TestDropinForwards sends every signal that a Go program can catch to each init, as PID 1
// and not. lameduck passes on all signals that the init passes on, and also those that some
// inits keep: fault signals sent by kill(2) (tini#104) and terminal stops (podman#18095). No init
// passes on 32 and 33, which would end the command: the C library uses both between the threads of
// a process.
func TestDropinForwards(t *testing.T) {
	catchable := ^sig.SetOf(sig.KILL, sig.STOP, sig.CHLD, 27, 32, 33, 34)
	faults := sig.SetOf(4, 5, 6, 7, 8, 11, 31)
	kept := map[string]sig.Set{"tini": faults | sig.SetOf(sig.TTIN, sig.TTOU), "catatonit": faults | stops}
	for _, mode := range []string{"lameduck --", "tini -s --", "tini -s -g --", "dumb-init --", "dumb-init -c --", "catatonit --", "catatonit -g --"} {
		name, flags, _ := strings.Cut(mode, " ")
		onEachInit(t, name, func(t *testing.T, init string) {
			s := box.Setup{Init: init}
			for _, s.Outside = range []bool{false, true} {
				send := catchable
				if name == "dumb-init" && (s.Outside || flags == "--") {
					send = send.Without(stops) // see TestDropinStops
				}
				arrives := send
				if !isLameduck(s.Init) {
					arrives = send.Without(kept[name])
				}
				if s.Outside {
					send = arrives // the others would end the init
				}
				if !s.Outside || isLameduck(s.Init) { // else they would end the init
					send |= sig.Internal
				}
				session := "ready"
				for signal := range send.All {
					session += fmt.Sprint(" / ", int(signal))
					if arrives.Has(signal) {
						session += " / got " + signal.String()
					}
				}
				s.Boot(t, flags, box.Helper("catch")...).Play(session + " / only / > exit 7 / exits 7")
			}
		})
	}
}

// TestDropinRewrites: signals sent to dumb-init with --rewrite, and the resulting signals at
// the command. The last rewrite of a signal wins, and rewrites do not chain. (Nothing arrives for a
// dropped signal: RTMAX, sent later, arrives after all others.)
func TestDropinRewrites(t *testing.T) {
	sessions(t, `
	inits     | line | session
	dumb-init | INIT -r 15:3 CATCH               | ready / TERM / got QUIT / INT / got INT / only
	dumb-init | INIT -r 15:2 -r 2:15 CATCH       | ready / TERM / got INT / INT / got TERM / only
	dumb-init | INIT -r 15:0 -r 15:3 CATCH       | ready / TERM / got QUIT / only
	dumb-init | INIT -r 15:15 CATCH              | ready / TERM / got TERM / only
	dumb-init | INIT -r 15:0 CATCH               | ready / TERM / RTMAX / got RTMIN+30 / TERM / RTMAX / got RTMIN+30 / only
	dumb-init | INIT -r 17:10 CATCH              | ready / CHLD / RTMAX / got RTMIN+30 / only
	dumb-init | INIT -r 20:10 -r 21:12 CATCH     | ready / TSTP / got USR1 / TTIN / got USR2 / only
	dumb-init | INIT -r 22:0 CATCH               | ready / TTOU / RTMAX / got RTMIN+30 / only
	dumb-init | INIT -c -r 20:10 CATCH           | ready / TSTP / got USR1 / TTIN / got TTIN / TTOU / got TTOU / only
	dumb-init | INIT --single-child -- CATCH     | ready / TERM / got TERM / TSTP / got TSTP / only
	dumb-init | INIT --rewrite=10:12 -r1:2 CATCH | ready / USR1 / got USR2 / HUP / got INT / only
	`)
}

// TestDropinStops: dumb-init sends STOP to the command's group for each terminal stop
// signal, because an orphaned process group ignores terminal stops. dumb-init as PID 1 does
// not stop itself (its STOP to itself would take back a CONT); else it stops with its command,
// whatever the signal is rewritten to. CONT continues both.
func TestDropinStops(t *testing.T) {
	sessions(t, `
	inits     | on      | line | session
	dumb-init |         | INIT CATCH | ready / TSTP / state S T / CONT / got CONT / TTIN / state S T / CONT / got CONT
		/ TTOU / state S T / CONT / got CONT / only / > exit 7 / exits 7
	dumb-init | outside | INIT CATCH | ready / TSTP / state T T / CONT / got CONT / state S / TTIN / state T T / CONT / got CONT / state S
		/ TTOU / state T T / CONT / got CONT / state S / only / > exit 7 / exits 7
	dumb-init | outside | INIT -c CATCH | ready / TSTP / got TSTP / state T / CONT / got CONT / state S / TTIN / got TTIN / state T
		/ CONT / got CONT / state S / TTOU / got TTOU / state T / CONT / got CONT / state S / only / > exit 7 / exits 7
	dumb-init | outside | INIT -r 20:1 -r 21:15 -r 22:2 CATCH | ready / TSTP / got HUP / state T / CONT / got CONT / state S / TTIN
		/ got TERM / state T / CONT / got CONT / state S / TTOU / got INT / state T / CONT / got CONT / state S / only / > exit 7 / exits 7
	`)
}
