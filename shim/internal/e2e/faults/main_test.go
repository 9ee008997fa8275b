// Package faults_test stops lameduck where something is missing, full or denied: processes,
// memory, descriptors, arguments, system calls, standard error, a command that obeys.
package faults_test

import (
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
)

func TestMain(m *testing.M) { box.Main(m, nil) }

// trap is a shell that catches TERM, for places where the test binary cannot run. It prints GODEBUG.
var trap = []string{"sh", "-c",
	`trap 'echo got TERM; read x; exit 7' TERM; echo "ready $GODEBUG"; sleep 1000 & wait`}

// wantTERM stops lameduck, calls during, and wants TERM to reach the command after a second.
func wantTERM(b *box.Box, during func()) {
	b.T.Helper()
	start := b.Stop()
	during()
	if after := b.Out.Wait("got TERM").At.Sub(start).Seconds(); after < 1 || after > 3 {
		b.T.Errorf("TERM after %v, want 1 s to 3 s; stderr:\n%v", after, b.Err.All())
	}
}
