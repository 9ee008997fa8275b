package observe

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// A glance is a sample of the connections that the latest full sample showed. A dump takes
// milliseconds where the kernel's hash table of sockets is large; a glance at 24 connections
// takes a tenth of a millisecond. Connections that come or end meanwhile are in the next full
// sample, maxGlances later at the latest. A connection that a glance does not find may have
// ended, or may be bound to a device, where a lookup does not find the connection: a full
// sample then decides.
const (
	maxGlanced = 512 // sockets
	maxGlances = 50 * time.Millisecond
)

// noneCame is for how long no connection has come if glances show all requests.
const noneCame = time.Second

// glanced is the connections of the latest full sample that count.
type glanced struct {
	sockets []tcp.Socket // maxGlanced+1 at most
	at      time.Time    // zero: no glances before the next full sample
}

func (g *glanced) begin(now time.Time) {
	g.sockets = g.sockets[:0]
	g.at = now
}

// add adds a socket. Among several listeners of a port a lookup finds only one, so a glance
// has no listeners.
func (g *glanced) add(s *tcp.Socket) {
	if s.State != tcp.Listen && len(g.sockets) <= maxGlanced {
		g.sockets = append(g.sockets, *s)
	}
}

// mayGlance reports whether a glance is a substitute for a full sample.
func (o *observer) mayGlance(now time.Time, t *traffic.Tracker) bool {
	few := len(o.glanced.sockets) <= maxGlanced
	return o.source.conn != nil && few && now.Sub(o.glanced.at) < maxGlances && t.NoneCameFor(noneCame)
}

// glance gives the tracker a sample of the connections of the latest full sample, and
// reports whether the sample is complete. Events are left to the next full sample, which
// asks the health listener for its connections first.
func (o *observer) glance(now time.Time, t *traffic.Tracker) (complete bool) {
	t.Begin(now)
	found := 0
	err := o.source.conn.Lookup(o.glanced.sockets, func(_ int, s *tcp.Socket) {
		found++
		o.pingpong.apply(s)
		t.Observe(s)
	})
	complete = err == nil && found == len(o.glanced.sockets)
	if !complete {
		o.glanced.at = time.Time{}
	}
	t.End(traffic.Rest{Incomplete: !complete})
	return complete
}
