package observe

import (
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// replies knows whether the last requests were answered at once, of the connections
// where their times do not tell. The kernel says so in a table of all there are, which
// is read for new ones, and not at every look.
type replies struct {
	list  func(tell func(local, remote netip.AddrPort, prompt bool)) error
	known map[uint64]reply // by traffic.Ends
	asked bool             // there are some that are not known yet
	read  time.Time
	look  int
}

// reply is of a connection on which this much had come and gone, as long as no more
// does.
type reply struct {
	received, sent uint64
	look           int // at which it was there last
	told, prompt   bool
}

// rarely is how far apart the table is read.
const rarely = time.Second

// begin begins a look: it finds out what the last one asked for.
func (a *replies) begin(now time.Time) {
	for at, k := range a.known {
		if k.look != a.look {
			delete(a.known, at)
		}
	}
	a.look++
	if !a.asked || now.Sub(a.read) < rarely {
		return
	}
	a.asked, a.read = false, now
	// Of an error nothing comes but that they stay unknown, and hold.
	a.list(func(local, remote netip.AddrPort, prompt bool) {
		at := traffic.ConnKey(local, remote)
		if k, ok := a.known[at]; ok && !k.told {
			k.told, k.prompt = true, prompt
			a.known[at] = k
		}
	})
}

// tell sets Prompt. What was read counts if nothing has come or gone since before it.
func (a *replies) tell(s *tcp.Socket) {
	if !traffic.AmbiguousOrder(s) {
		return
	}
	at := traffic.ConnKey(s.Local, s.Remote)
	k := a.known[at]
	if k.received != s.Info.Received || k.sent != s.Info.Sent {
		k = reply{received: s.Info.Received, sent: s.Info.Sent}
	}
	k.look = a.look
	a.known[at] = k
	a.asked = a.asked || !k.told
	s.Info.PingPong = k.told && k.prompt
}
