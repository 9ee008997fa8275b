package traffic

import (
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"net/netip"
	"testing"
	"time"
)

func BenchmarkSample(b *testing.B) {
	var socks []tcp.Socket
	for i := range 50000 {
		socks = append(socks, tcp.Socket{State: tcp.Established, Cookie: uint64(i + 1), Inode: 1, HasInfo: true, Local: netip.MustParseAddrPort("10.0.0.1:80"), Remote: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.7"), uint16(1024+i%60000)), Info: tcp.Info{Received: 100, Sent: 200, Segments: 2, LastSent: time.Second, LastReceived: time.Second + 4*time.Millisecond, LastAcked: time.Second}})
	}
	tr := New(Config{QuietFor: 3 * time.Second, MaxSilence: 30 * time.Second, Poll: 250 * time.Millisecond}, start)
	now := start
	for b.Loop() {
		now = now.Add(250 * time.Millisecond)
		tr.Begin(now)
		for i := range socks {
			tr.Observe(&socks[i])
		}
		tr.End(Rest{})
		tr.Verdict()
		tr.Summary()
	}
}
