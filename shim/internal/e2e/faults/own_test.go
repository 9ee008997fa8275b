package faults_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestOwnFaults: a panic at any call of the host, or in the sampler, ends nothing. The command gets
// the signals that come, its stop signal for TERM, once, and time; orphans are reaped; the exit code is
// the command's, and one line says what happened. The build has the tag faults.
func TestOwnFaults(t *testing.T) {
	faulty := filepath.Join(t.TempDir(), "lameduck")
	build := exec.Command("make", "-C", testutil.Root(), "build", "OUT="+faulty, "FLAGS=-trimpath -buildvcs=false -tags=faults")
	build.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const flags = "--preset=auto --delay=0.5 --until=quiet --quiet-for=0.3 --max-delay=2 --grace-period=60 -r TERM:USR1 -r INT:INT " +
		"--on-stop=http://127.0.0.1:1/"
	for _, at := range []string{
		"", "next", "fromOutside", "startSampling", "ask", "sampler", "writeLine", "writeTermlog", "ReleaseInherited", "Reap",
		"Kill", "Signals", "Program",
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
			if want := at != "" && at != "writeLine"; (said == 1) != want {
				t.Errorf("%d lines about the fault: %v", said, b.Messages())
			}
		})
	}
}
