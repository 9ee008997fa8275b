// Package hold_test tests what a hold sees of the traffic, in pods and under faults, and
// lameduck hold and watch. When traffic has ended is the business of package traffic and of
// the laboratory's truth table.
package hold_test

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
)

func TestMain(m *testing.M) {
	box.Main(m, map[string]func([]string){"as": as, "proxy": proxy})
}

// as runs a helper as another user, whose descriptors root without capabilities cannot read.
func as(args []string) {
	id, err := strconv.Atoi(args[0])
	box.Die(err)
	box.Die(syscall.Setgroups(nil))
	box.Die(syscall.Setresgid(id, id, id))
	box.Die(syscall.Setresuid(id, id, id))
	box.Die(unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0))
	box.RunHelper(args[1], args[2:])
}

// quiet is the silence of most tests.
const quiet = time.Second

// flags end a hold after the silence.
const flags = "--quiet-for=1 --grace-period=30 "

// shorts makes a request on a short connection ten times a second for two silences, wants
// the hold to go on, and returns the time of the last.
func shorts(b *box.Box, host string) time.Time {
	b.T.Helper()
	return b.Busy(quiet, 100*time.Millisecond, func() { b.ShortConn(host) })
}

// kept is how long clients hold that keep their connections.
const kept = 8 * quiet

// wantKept stops lameduck while clients call ask, and wants the hold to end although they do.
func wantKept(b *box.Box, every time.Duration, ask func()) box.Report {
	b.T.Helper()
	end := box.Steady(b.T, quiet, every, ask)
	start := b.Trigger()
	b.Out.Wait("got TERM")
	end()
	return b.WantHold(start, kept, "kept")
}

// early is how much sooner than the silence a hold may end, by the test's clock.
const early = 300 * time.Millisecond
