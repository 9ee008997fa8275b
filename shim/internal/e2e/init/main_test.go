// Package init_test tests the duties of a PID 1: processes, signals, what the command
// inherits, the terminal, and the time that lameduck takes while nothing happens.
package init_test

import (
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
)

func TestMain(m *testing.M) {
	box.Main(m, map[string]func([]string){"worker": helpWorker, "node": helpNode})
}

// TestIdle: after a number of signals, with every feature switched on, lameduck sleeps as
// long as no event arrives.
func TestIdle(t *testing.T) {
	box.Row{
		"line": "LAMEDUCK --until=quiet --grace-period=30 --preset=auto --log-level=debug --kill-after=5 --on-stop=true --wait-gone=/no/such " +
			"--health=127.0.0.1:9 --alive-file=alive CATCH",
		"session": "ready" + strings.Repeat(" / WINCH / got WINCH", 100) + " / sleeps / > exit 7 / exits 7",
	}.Play(t, nil)
}

// TestOrphanWakes: an orphan wakes the loop's thread and no other, of which Go's runtime would
// wake several, some thirty times in all.
func TestOrphanWakes(t *testing.T) {
	t.Parallel()
	if !sigcatch.Direct {
		t.Skip("on this kind of processor every signal passes through a thread of the runtime's")
	}
	b := box.Setup{}.Boot(t, "", "sh", "-c", `while read go && [ "$go" = go ]; do (: &)`+alone+`; echo gone; done; exit 7`)
	b.Play("sleeps")
	before := box.Switches(b.Pid())
	const orphans = 20
	for n := range orphans {
		b.Send("go")
		b.Out.WaitNth(n+1, "gone")
	}
	others := 0
	for thread, n := range box.Switches(b.Pid()) {
		if thread != b.Pid() {
			others += n - before[thread]
		}
	}
	if others > orphans { // the runtime's sysmon wakes by itself once a minute
		t.Errorf("%d orphans wake other threads %d times", orphans, others)
	}
	b.Exit()
}
