package faults_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestOwnFaults: a panic at any event or action, or in the sampler, ends nothing. The command gets
// the signals that come, its stop signal for TERM, once, and time; orphans are reaped; the exit code is
// the command's, and one line says what happened.
func TestOwnFaults(t *testing.T) {
	faulty := buildFaulty(t)
	const flags = "--preset=auto --delay=0.5 --until=quiet --quiet-for=0.3 --max-delay=2 --grace-period=60 -r TERM:USR1 -r INT:INT " +
		"--on-stop=http://127.0.0.1:1/"
	for _, at := range []string{
		"", "next", "started", "HUP", "forward HUP", "exit 7", "TERM", "report start", "start sampling", "sampler", "send USR1",
		"TERM,log",
	} {
		t.Run("at "+at, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "log")
			s := box.Setup{Env: []string{"FAULT_AT=" + at}}
			b := s.Start(t, append(append([]string{faulty}, box.Words(flags+" --termination-log="+log)...),
				append([]string{"--"}, box.Helper("catch")...)...)...)
			b.Ready()
			b.Signal(sig.HUP)
			b.Send("run (true &)") // an orphan
			b.Out.Wait("did run (true &)")
			start := time.Now()
			b.Stop()
			b.Out.Wait("got USR1")
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("the stop signal came after %v", took)
			}
			b.Out.Wait("got HUP")
			testutil.Eventually(t, "the orphan is reaped", func() bool { return len(box.Children(b.Pid())) == 1 })
			b.Exit()
			if n := b.Out.Count("got USR1"); n != 1 {
				t.Errorf("%d stop signals", n)
			}
			said := strings.Count(strings.Join(b.Messages(), "\n"), "a fault of lameduck's own")
			if want := at != "" && at != "TERM,log"; (said == 1) != want {
				t.Errorf("%d lines about the fault: %v", said, b.Messages())
			}
		})
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
	faulty := buildFaulty(t)
	for _, c := range box.Table(`
		at            | flags                | TERM | code
		start sampling | --max-delay=2       |      | 125
		next          | --max-delay=2        |      | 125
		next,log      | --max-delay=2        |      | 125
		sampler       | --max-delay=2        |      | 0
		sampler       | --max-delay=2 --until=elapsed --wait-gone=/proc/version |  | 125
		next          | -d 2 --until=elapsed |      | 125
		next          |                      | TERM | 125
	`) {
		t.Run(c["at"]+" "+c["flags"], func(t *testing.T) {
			t.Parallel()
			s := box.Setup{Outside: true, Network: box.NewNetwork(t), Env: []string{"FAULT_AT=" + c["at"]}}
			start := time.Now()
			b := s.Start(t, append([]string{faulty, "hold", "--grace-period=60", "--quiet-for=0.3"}, box.Words(c["flags"])...)...)
			if c["TERM"] != "" {
				b.Err.Wait("the hold goes on blindly for 4")
				b.Signal(sig.TERM)
			}
			code := b.WaitExit()
			if held := time.Since(start); c["TERM"] == "" && held < 2*time.Second || strconv.Itoa(code) != c["code"] {
				t.Errorf("held %v, exited %d: %v", held, code, b.Messages())
			}
			said := strings.Count(strings.Join(b.Messages(), "\n"), "a fault of lameduck's own")
			sees := c["at"] != "next,log" && !strings.Contains(c["flags"], "--wait-gone") // it needs no traffic
			if (said == 1) != sees {
				t.Errorf("%d lines about the fault: %v", said, b.Messages())
			}
		})
	}
}
