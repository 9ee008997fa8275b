package traffic

import (
	"net/netip"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// tied returns a connection whose latest request came in the jiffy of the response before,
// if any had come by then.
func tied(at, came time.Duration, pureACKs uint32) tcp.Socket {
	sock := tcp.Socket{State: tcp.Established, Local: netip.MustParseAddrPort("10.0.0.9:80"), Remote: netip.MustParseAddrPort("10.0.0.1:4000"),
		Cookie: 1, Inode: 1, HasInfo: true}
	if at < came {
		sock.Info = exchanged(100, 50)
		return sock
	}
	age := at - came
	sock.Info = tcp.Info{Received: 400, Sent: 1200, Segments: 4, SentSegments: 4, Acked: 1200, PureACKs: pureACKs,
		LastReceived: age, LastSent: age, LastAcked: age}
	return sock
}

// TestAtRiskTie: a connection on which a request waits, or no request, when the frequent
// samples begin. A request that waits gets a delayed pure ACK, perhaps before a sample.
func TestAtRiskTie(t *testing.T) {
	for name, c := range map[string]struct {
		came     time.Duration
		pureACKs [5]uint32 // at 9.3 s, 9.633 s, 9.966 s and so on
		want     int
	}{
		"a pure ACK between usual samples":    {s(9.6), [5]uint32{1, 1, 2, 2, 2}, 1},
		"a pure ACK before the next sample":   {s(9.4), [5]uint32{1, 2, 2, 2, 2}, 1},
		"no pure ACK":                         {s(9.6), [5]uint32{1, 1, 1, 1, 1}, 0},
		"no pure ACK, a moment ago":           {s(9.9), [5]uint32{1, 1, 1, 1, 1}, 1},
		"a pure ACK between frequent samples": {s(9.9665), [5]uint32{1, 1, 1, 1, 2}, 1},
	} {
		tracker := New(Config{QuietFor: s(4), MaxSilence: s(30), Poll: s(0.333)}, start)
		for i, at := range []time.Duration{s(9.3), s(9.633), s(9.966), s(9.967), s(9.968)} {
			sock := tied(at, c.came, c.pureACKs[i])
			if at < c.came {
				sock.Info.PureACKs = c.pureACKs[i]
			}
			tracker.Begin(start.Add(at))
			tracker.Observe(&sock)
			tracker.End(Rest{})
		}
		if got := tracker.Verdict().AtRisk; got != c.want {
			t.Errorf("%s: %d at risk, want %d", name, got, c.want)
		}
	}
}
