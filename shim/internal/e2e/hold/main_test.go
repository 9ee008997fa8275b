// Package hold_test tests what only the built binary with real sockets can show of a hold: which
// traffic counts, in pods and under faults, and lameduck hold and watch. When traffic has ended is
// the business of package traffic and of the laboratory's truth table.
package hold_test

import (
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
)

func TestMain(m *testing.M) { box.Main(m, nil) }

// quiet is the silence of the tests, and early how much sooner than that a hold may end, by the
// test's clock.
const (
	quiet = time.Second
	early = 300 * time.Millisecond
)

// flags end a hold after the silence.
const flags = "--quiet-for=1 --grace-period=30 "

// shorts makes a request on a short connection ten times a second for two silences, wants
// the hold to go on, and returns the time of the last.
func shorts(b *box.Box, host string) time.Time {
	b.T.Helper()
	return b.Busy(quiet, 100*time.Millisecond, func() { b.ShortConn(host) })
}
