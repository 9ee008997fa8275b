package observe

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// A glance is a sample of the sockets that the latest full sample showed. A dump takes
// milliseconds where the kernel's hash table of sockets is large; a glance at 24 connections
// takes a tenth of a millisecond. Connections that come meanwhile are in the next full
// sample, maxGlances later at the latest.
const (
	maxGlanced = 512 // sockets
	maxGlances = 50 * time.Millisecond
)

// glanced is the sockets of the latest full sample that count.
type glanced struct {
	sockets []tcp.Socket // maxGlanced+1 at most
	at      time.Time
}

func (g *glanced) begin(now time.Time) {
	g.sockets = g.sockets[:0]
	g.at = now
}

func (g *glanced) add(s *tcp.Socket) {
	if len(g.sockets) <= maxGlanced {
		g.sockets = append(g.sockets, *s)
	}
}

// mayGlance reports whether a glance is a substitute for a full sample.
func (o *observer) mayGlance(now time.Time) bool {
	return o.source.conn != nil && len(o.glanced.sockets) <= maxGlanced && now.Sub(o.glanced.at) < maxGlances
}

// glance gives the tracker a sample of the sockets of the latest full sample.
func (o *observer) glance(now time.Time, t *traffic.Tracker) error {
	t.Begin(now)
	err := o.source.conn.Lookup(o.glanced.sockets, func(_ int, s *tcp.Socket) {
		o.pingpong.apply(s)
		t.Observe(s)
	})
	rest := traffic.Rest{Incomplete: err != nil}
	o.events.endSample(&rest, func(s *tcp.Socket) bool { return o.self.excludesClosed(s, o.proxied.has) })
	t.End(rest)
	return err
}
