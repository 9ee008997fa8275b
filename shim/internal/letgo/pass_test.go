package letgo

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/world"
)

// BenchmarkPass is what a sample costs of kept connections of which half are idle; or of which none may be
// closed, since their clients hesitate: one of each of them has been closed, and is open.
func BenchmarkPass(b *testing.B) {
	for _, hesitate := range []bool{true, false} {
		for _, n := range []int{1_000, 10_000, 30_000} {
			b.Run(fmt.Sprintf("hesitate=%v/%d", hesitate, n), func(b *testing.B) {
				w := newKeptWorld(n, hesitate)
				for b.Loop() {
					w.pass()
				}
			})
		}
	}
}

// keptWorld has connections that talk in turn, half of them idle, and whose clients hesitate.
type keptWorld struct {
	*Asker
	ledger *ledger.Ledger
	conns  []tcp.Socket
	at     time.Duration
}

func newKeptWorld(n int, hesitate bool) *keptWorld {
	w := &keptWorld{
		Asker:  New(Config{QuietFor: s(4), CloseIdle: true}),
		ledger: ledger.New(ledger.Config{Start: world.Start, LostAfter: s(1), MaxTie: s(9)}),
	}
	for i := range n {
		peer := netip.AddrFrom4([4]byte{10, 0, byte(i % (n / 8) >> 8), byte(i % (n / 8))}) // eight of each client
		w.conns = append(w.conns, tcp.Socket{
			State: tcp.Established, Inode: 1, Cookie: uint64(i + 1), HasInfo: true,
			Local: netip.MustParseAddrPort("10.0.0.99:80"), Remote: netip.AddrPortFrom(peer, uint16(1000+i%60_000)),
			Info: tcp.Info{Received: 500, Sent: 900, Segments: 5, SentSegments: 5, LastReceived: s(9), LastSent: s(9)},
		})
	}
	for range 10 {
		w.sample()
	}
	for _, y := range w.servers {
		y.usual.proof = enoughCycles
	}
	for _, k := range w.kept {
		if hesitate && k.from.stay == 0 && k.answered() {
			w.NoteAsked(k, &k.Socket)
		}
	}
	w.sample()
	if idle := len(w.idle()); idle < min(n, manyIdle)/10 {
		panic(fmt.Sprint(idle, " are idle"))
	}
	return w
}

// sample takes a sample, before which a half of the connections has had a request and its answer.
func (w *keptWorld) sample() {
	w.at += 25 * time.Millisecond
	half := int(w.at/(25*time.Millisecond)) % 2
	w.ledger.Begin(world.Start.Add(w.at))
	for i := range w.conns {
		info := &w.conns[i].Info
		info.LastReceived, info.LastSent = info.LastReceived+25*time.Millisecond, info.LastSent+25*time.Millisecond
		if i%2 == half {
			info.Received, info.Sent = info.Received+300, info.Sent+500
			info.Segments, info.SentSegments = info.Segments+1, info.SentSegments+1
			info.LastReceived, info.LastSent = 8*time.Millisecond, time.Duration(i%8)*time.Millisecond
		}
		w.ledger.Observe(&w.conns[i], ledger.Clients)
	}
	w.updateAndAnswer(w.ledger.End(ledger.Rest{}), w.at, Answer{})
}

// pass is what the Asker does of a sample.
func (w *keptWorld) pass() {
	w.Update(w.ledger.End(ledger.Rest{}), w.at)
	w.Watching()
	w.ToAsk()
}
