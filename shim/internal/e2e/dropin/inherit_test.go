package dropin_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestDropinInheritsSignals: the commands of lameduck, tini and catatonit start with the blocked
// and ignored signals of the init. dumb-init resets all of them but ignored real-time signals.
func TestDropinInheritsSignals(t *testing.T) {
	box.Needs(t, "bash")
	const internal = 1<<31 | 1<<32 // 32 and 33
	all := ^sig.SetOf(32, 33, sig.KILL, sig.STOP)
	parse := func(names string) (set sig.Set) {
		for name := range strings.FieldsSeq(names) {
			set = set.With(testutil.Must(sig.Parse(name)))
		}
		return set
	}
	for _, name := range []string{"lameduck", "tini", "catatonit", "dumb-init"} {
		onEachInit(t, name, func(t *testing.T, init string) {
			for _, c := range box.Table(`
				blocked          | ignored
				                 |
				                 | CHLD
				CHLD             |
				all              | all
				TERM USR1 37     |
				                 | HUP INT
				# tini's own test, and more
				TTIN 4 TERM CHLD | TTOU 11 INT PIPE URG 40
			`) {
				wantBlocked, wantIgnored := all, all
				if c["blocked"] != "all" {
					wantBlocked, wantIgnored = parse(c["blocked"]), parse(c["ignored"])
				}
				if !isLameduck(init) && wantIgnored.Has(sig.CHLD) {
					continue // inits hang on an ignored CHLD
				}
				// lameduck's second stage blocks and ignores the signals.
				stage := fmt.Sprintf(`exec -a lameduck-stage %s 99 0 %x %x "$@"`, box.Binary, uint64(wantBlocked), uint64(wantIgnored))
				out := testutil.Must(exec.Command("bash", "-c", stage, "bash", init, "--", "cat", "/proc/self/status").Output())
				set := func(field string) sig.Set { return box.ParseSignals(box.Field(string(out), field)).Without(internal) }
				blocked, ignored := set("SigBlk"), set("SigIgn")
				switch {
				case name == "dumb-init":
					wantBlocked, wantIgnored = 0, wantIgnored.Without(sig.Standard)
				case name == "catatonit" && !isLameduck(init):
					wantBlocked |= stops // a bug: the command never gets the stop signals
				}
				if blocked != wantBlocked || ignored != wantIgnored {
					t.Errorf("the command has %x and %x; want %x and %x", blocked, ignored, wantBlocked, wantIgnored)
				}
			}
		})
	}
}

// TestDropinMayNotSignal: without CAP_KILL an init cannot signal a command that runs as
// another user. tini exits then, and its container ends; the other inits go on.
func TestDropinMayNotSignal(t *testing.T) {
	box.Needs(t, "setpriv")
	box.NeedsRoot(t)
	for _, name := range []string{"tini", "dumb-init", "catatonit"} {
		onEachInit(t, name, func(t *testing.T, init string) {
			// The command changes its user once its init passes signals on: catatonit ends if it
			// may not signal the command that it has just started.
			command := `trap go=1 USR2; kill -USR2 $PPID; until [ $go ]; do sleep 0.01; done
				exec setpriv --reuid 65534 --clear-groups sh -c "echo ready; read x; exit 5"`
			session := "ready / USR1 / > end / exits 5" // under tini the command outlives its init, and keeps the pipes open
			switch {
			case isLameduck(init):
				session = "ready / USR1 / err cannot send USR1 to the command: operation not permitted / > end / exits 5"
			case name == "tini":
				session = "ready / USR1 / err Operation not permitted / > end / exits 1"
			}
			box.Row{"on": "outside", "line": "setpriv --bounding-set -kill " + init + " -- sh -c '" + command + "'", "session": session}.Play(t, nil)
		})
	}
}

// TestDropinHold: under the name of an init, lameduck holds as LAMEDUCK_* variables say: an
// init that a runtime injects gets no flags. The command gets all other variables.
func TestDropinHold(t *testing.T) {
	for _, c := range box.Table(`
		case        | line
		docker-init | DIR/docker-init -- CATCH
		tini        | DIR/tini -s -- CATCH
		tini-static | DIR/tini-static -- CATCH
		podman-init | DIR/podman-init -- CATCH
		catatonit   | DIR/catatonit -g -- CATCH
		dumb-init   | DIR/dumb-init -c -r 15:12 -- CATCH
	`) {
		c["line"] = strings.ReplaceAll(c["line"], "DIR", filepath.Dir(link(t, c["case"])))
		c["env"] = "LAMEDUCK_DELAY=15 LAMEDUCK_GRACE_PERIOD=60 LAMEDUCK_REWRITE=TERM:USR2 TINI_SUBREAPER= DUMB_INIT_DEBUG=0 APP=1"
		c["session"] = `ready / > run [ "${TINI_SUBREAPER-gone}$DUMB_INIT_DEBUG$APP" = 01 ] && ! env BAR grep LAMEDUCK_ / exit status 0 / TERM / err holding / HUP / got HUP / INT / got USR2 / > exit 7 / exits 7 / never got TERM / never got INT / ended interrupt USR2`
		c.Play(t, nil)
	}
}
