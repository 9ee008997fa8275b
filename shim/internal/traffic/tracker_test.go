package traffic_test

import (
	"net/netip"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/world"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// TestReset: a connection reset by the program counts, though the event has only the
// peer's address. A closed listener does not count.
func TestReset(t *testing.T) {
	for _, seen := range []bool{false, true} {
		w := world.World{}
		tr := world.NewHold(traffic.Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(0.25)})
		l := world.Parse("at=-5 answered").Lives[0]
		l.ID = 7
		if seen {
			w.Lives = []world.Life{l}
		}
		w.Sample(tr, 0)
		sock := l.At(s(1))
		sock.State, sock.Unsent = tcp.Close, 65538
		sock.Info = tcp.Info{LastReceived: s(1e6)}
		var closed []world.Closed
		for _, end := range []string{"0.0.0.0:0", "[::]:0", "10.0.0.1:0"} {
			sock.Remote = netip.MustParseAddrPort(end)
			closed = append(closed, world.Closed{Socket: sock, At: world.Start.Add(s(1))})
		}
		w.Lives = nil
		w.Sample(tr, s(1), closed...)
		if (tr.Accepted == 1) == seen || !tr.LastByte.Equal(world.Start.Add(s(1))) || tr.Quiet {
			t.Errorf("seen before %v: %+v", seen, tr.Sample)
		}
	}
}
