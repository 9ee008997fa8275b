package faults_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestOwnFaults: a panic at any event or action, or in the sampler, ends nothing. The command gets
// the signals that come, its stop signal for TERM, once, and time; orphans are reaped; the exit code is
// the command's, and one line says what happened.
func TestOwnFaults(t *testing.T) {
	programs := map[string][]string{"FAULTY": {buildFaulty(t)}}
	for _, at := range []string{
		"", "next", "HUP", "forward HUP", "exit 7", "TERM", "report start", "start sampling", "sampler", "send USR1",
		"TERM,log",
	} {
		said := "once"
		if at == "" || at == "TERM,log" {
			said = "never"
		}
		box.Row{
			"case": "at " + at, "env": "'FAULT_AT=" + at + "'",
			"line": "FAULTY --preset=auto --delay=0.5 --until=quiet --quiet-for=0.3 --max-delay=2 --grace-period=100 -r TERM:USR1 -r INT:INT " +
				"--on-stop=http://127.0.0.1:1/ --termination-log=DIR/log -- CATCH",
			"session": "ready / HUP / > run (true &) / did run / TERM / got USR1 / state S S / > exit 7 / exits 7 / once got USR1 / once got HUP / " +
				said + " a fault of lameduck's own",
		}.Play(t, programs)
	}
}

// buildFaulty builds lameduck with the tag faults.
func buildFaulty(t *testing.T) (path string) {
	path = filepath.Join(t.TempDir(), "lameduck")
	build := exec.Command("make", "-C", testutil.Root(), "build", "OUT="+path, "FLAGS=-trimpath -buildvcs=false -tags=faults")
	build.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// TestOwnHookFaults: a hook that panics holds as long as it may, blindly, or until TERM, says so in one
// line, and fails. Without a fault the hold would end at once, since nothing listens.
func TestOwnHookFaults(t *testing.T) {
	programs := map[string][]string{"FAULTY": {buildFaulty(t)}}
	for _, c := range box.Table(`
		case          | flags                | session
		start sampling | --max-delay=2        | exits 125 / lasts 1.8s / once a fault of lameduck's own
		next          | --max-delay=2        | exits 125 / lasts 1.8s / once a fault of lameduck's own
		next,log      | --max-delay=2        | exits 125 / lasts 1.8s / never a fault of lameduck's own
		sampler       | --max-delay=2        | exits 0 / lasts 1.8s / once a fault of lameduck's own / once "observer":"none"
		# which needs no traffic
		sampler       | --max-delay=2 --until=elapsed --wait-gone=/proc/version | exits 125 / lasts 1.8s / never a fault of lameduck's own
		next          | -d 2 --until=elapsed | exits 125 / lasts 1.8s / once a fault of lameduck's own
		next          |                      | err the hold goes on blindly for 4 / TERM / exits 125 / once a fault of lameduck's own
	`) {
		c["on"], c["env"] = "outside, network", "'FAULT_AT="+c["case"]+"'"
		c["line"] = "FAULTY hold --grace-period=60 --quiet-for=0.3 " + c["flags"]
		c.Play(t, programs)
	}
}
