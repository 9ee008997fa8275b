package traffic_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/world"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// TestJudge: what a sample says of one connection, 40 s after the trigger, decides whether
// there is silence, which lasts 3 s, and 1 s on a connection that was shut, or that a client has closed
// as it was asked to. One that it keeps has a stream.
func TestJudge(t *testing.T) {
	for _, cells := range tables.Rows(`
		# the connection, and how long ago a byte moved | quiet
		shown 4               | yes
		shown 2               | no
		shown 2 own           | yes
		shown 2 ignored       | yes
		shown 2 shut          | yes
		shown 0.5 shut        | no
		shown 4 waits         | no
		shown 31 waits        | yes
		shown 4 tie           | no
		missing 4             | no
		missing 4 own         | yes
		lost 4                | yes
		lost 2                | no
		closed 4              | yes
		closed 2              | no
		closed 2 shut         | yes
		shown 2 notified      | no
		closed 2 notified     | yes
		closed 0.5 notified   | no
		shown 4 new           | no
		closed 4 new          | no
	`) {
		words := strings.Fields(cells[0])
		is := func(word string) bool { return slices.Contains(words, word) }
		sample := &ledger.Sample{Start: world.Start, At: world.Start.Add(s(40)), Now: ledger.Trigger + s(40)}
		c := &ledger.Conn{Accepted: true, Received: 5000, Sent: 9, Shut: is("shut"), Notified: is("notified"), Ended: sample.Now}
		c.State, c.HasInfo = tcp.Established, true
		c.Info = tcp.Info{Received: 5000, Sent: 9}
		c.Fate = map[string]ledger.Fate{"missing": ledger.Missing, "closed": ledger.Closed, "lost": ledger.Lost}[words[0]]
		ago, _ := time.ParseDuration(words[1] + "s")
		c.Moved = sample.Now - ago
		switch {
		case is("own"):
			c.Side = ledger.Own
		case is("ignored"):
			c.Side = ledger.Ignored
		case is("waits"):
			c.Request = ledger.InFlight
		case is("tie"):
			c.Request = ledger.Tie
		case is("new"):
			c.Opened = sample.Now - s(2)
		}
		sample.Conns = []*ledger.Conn{c}
		tracker := traffic.New(traffic.Config{QuietFor: s(3), MaxSilence: s(30)})
		got := tracker.Judge(sample, s(1))
		if got.Quiet != (cells[1] == "yes") || (got.Streams == 1) != (cells[0] == "shown 2 notified") {
			t.Errorf("%s: quiet is %v, and %d streams", cells[0], got.Quiet, got.Streams)
		}
	}
}
