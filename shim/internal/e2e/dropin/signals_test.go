package dropin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
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
	for _, mode := range modes {
		onEachCall(t, mode, func(t *testing.T, s box.Setup, flags string) {
			name, _, _ := strings.Cut(mode, " ")
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
				b := s.Catch(t, flags)
				if !s.Outside || isLameduck(s.Init) { // else they would end the init
					send |= sig.Internal
				}
				want := []string{"ready"}
				for signal := range send.All {
					b.Signal(signal)
					if arrives.Has(signal) {
						want = append(want, "got "+signal.String())
						b.Out.WaitNth(len(want), "")
					}
				}
				b.Out.Want(want...)
				b.Exit()
			}
		})
	}
}

// TestDropinRewrites: signals sent to dumb-init with --rewrite, and the resulting signals at
// the command. The last rewrite of a signal wins, and rewrites do not chain.
func TestDropinRewrites(t *testing.T) {
	for _, c := range box.Table(`
		flags                 | signals
		-r 15:3               | TERM>QUIT INT>INT
		-r 15:2 -r 2:1        | TERM>INT INT>HUP
		-r 15:2 -r 2:15       | TERM>INT INT>TERM
		-r 15:1 -r 15:3       | TERM>QUIT
		-r 15:0 -r 15:3       | TERM>QUIT
		-r 15:15              | TERM>TERM
		-r 1:31 -r 31:1       | HUP>SYS SYS>HUP
		-r 15:0               | TERM> TERM>
		-r 17:10              | CHLD> CHLD>
		-r 20:10 -r 21:12     | TSTP>USR1 TTIN>USR2
		-r 22:0               | TTOU>
		-c -r 15:2            | TERM>INT
		-c -r 20:10           | TSTP>USR1 TTIN>TTIN TTOU>TTOU
		--single-child --     | TERM>TERM TSTP>TSTP
		--rewrite=10:12 -r1:2 | USR1>USR2 HUP>INT
	`) {
		onEachCall(t, "dumb-init "+c["flags"], func(t *testing.T, s box.Setup, flags string) {
			b := s.Catch(t, flags)
			want := []string{"ready"}
			for _, step := range strings.Fields(c["signals"]) {
				from, to, _ := strings.Cut(step, ">")
				b.Signal(testutil.Must(sig.Parse(from)))
				if to == "" { // nothing arrives for a dropped signal: RTMAX, sent later, arrives after all others
					b.Signal(sig.RTMax)
					to = sig.RTMax.String()
				}
				want = append(want, "got "+to)
				b.Out.WaitNth(len(want), "")
			}
			b.Out.Want(want...)
		})
	}
}

// groupScript starts two processes, each of which prints a line at USR1. With the argument
// "wait" the first process waits for the second.
const groupScript = `trap 'echo first; [ "$0" = wait ] && wait; exit 5' USR1
( trap 'echo second; exit' USR1; echo ready; while :; do sleep 0.01; done ) & wait`

// TestDropinGroup: whether a signal goes to the command or to the command's process group.
func TestDropinGroup(t *testing.T) {
	for _, c := range box.Table(`
		call                              | signals
		tini --                           | command
		tini -g --                        | group
		TINI_KILL_PROCESS_GROUP= tini --  | group
		TINI_KILL_PROCESS_GROUP=0 tini -- | group
		dumb-init                         | group
		dumb-init -c                      | command
		DUMB_INIT_SETSID=0 dumb-init      | command
		DUMB_INIT_SETSID=1 dumb-init      | group
		catatonit --                      | command
		catatonit -g --                   | group
	`) {
		onEachCall(t, c["call"], func(t *testing.T, s box.Setup, flags string) {
			last, want := "exit", []string{"first", "ready"}
			if c["signals"] == "group" {
				last, want = "wait", []string{"first", "ready", "second"}
			}
			b := s.Boot(t, flags, "sh", "-c", groupScript, last)
			b.Ready()
			b.Signal(sig.USR1)
			b.WantExit(5)
			if got := slices.Sorted(slices.Values(b.Out.Texts())); !slices.Equal(got, want) {
				t.Errorf("printed %v, want %v", got, want)
			}
		})
	}
}

// TestDropinStops: dumb-init sends STOP to the command's group for each terminal stop
// signal, because an orphaned process group ignores terminal stops. dumb-init as PID 1 does
// not stop itself; else it stops with its command, whatever the signal is rewritten to. CONT
// continues both.
func TestDropinStops(t *testing.T) {
	for _, c := range []struct {
		call    string
		outside bool
		gets    []string // "": the command is stopped
	}{
		{"dumb-init", false, []string{"", "", ""}},
		{"dumb-init", true, []string{"", "", ""}},
		{"dumb-init -c", true, []string{"got TSTP", "got TTIN", "got TTOU"}},
		{"dumb-init -r 20:1 -r 21:15 -r 22:2", true, []string{"got HUP", "got TERM", "got INT"}},
	} {
		onEachCall(t, c.call, func(t *testing.T, s box.Setup, flags string) {
			s.Outside = c.outside
			b := s.Catch(t, flags)
			command := b.Child()
			want := []string{"ready"}
			for i, s := range []sig.Signal{sig.TSTP, sig.TTIN, sig.TTOU} {
				b.Signal(s)
				own := "S" // the STOP of dumb-init as PID 1 to itself would take back a CONT
				if c.outside {
					own = "T"
				}
				if c.gets[i] == "" {
					box.AwaitState(t, command, "T")
				} else {
					want = append(want, c.gets[i])
					b.Out.Wait(c.gets[i])
				}
				box.AwaitState(t, b.Pid(), own)
				b.Signal(sig.CONT)
				want = append(want, "got CONT")
				b.Out.WaitNth(len(want), "")
				box.AwaitState(t, b.Pid(), "S")
			}
			b.Out.Want(want...)
			b.Exit()
		})
	}
}
