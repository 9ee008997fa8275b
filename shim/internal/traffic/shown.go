package traffic

import (
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Conn is what the latest sample has shown of a connection. Of one that the program has closed,
// or that has ended since the sample before, only the first five fields are known.
type Conn struct {
	Cookie uint64
	Peer   netip.Addr
	Port   uint16 // the local port
	State  tcp.State
	New    bool // has come since the sample before, and since the trigger

	Inode        uint32
	InUse        bool         // bytes moved less than QuietFor ago, and since the trigger
	Queued       bool         // bytes wait to be read or sent
	Request      RequestState // of the last request
	Received     uint64       // bytes
	Segments     uint32       // received with data
	Sent         uint64       // bytes, those sent again counted once
	SentSegments uint32       // with data

	LastReceived, LastSent time.Duration // ages of data
	RTT                    time.Duration // the shortest lately
}

// show adds a connection to Conns.
func (t *Tracker) show(s *tcp.Socket, c *conn, isFirst bool, request RequestState) {
	if !t.cfg.CloseIdle {
		return
	}
	switch {
	case !s.HasInfo:
		request = Tie
	case s.Unread == 0 && s.Unsent > 0 && s.Info.NotSent == 0 && s.Info.LastSent <= s.Info.LastReceived:
		request = Idle // a client that has read the answer may delay the ACK by 40 ms
	}
	t.shown = append(t.shown, Conn{
		Cookie: s.Cookie, Peer: s.Remote.Addr(), Port: s.Local.Port(), State: s.State, New: c.isNew && isFirst,
		Inode: s.Inode, InUse: t.recent(c.moved), Queued: s.Unread > 0 || s.Info.NotSent > 0, Request: request,
		Received: c.received, Segments: s.Info.Segments, Sent: c.sent, SentSegments: s.Info.SentSegments,
		LastReceived: s.Info.LastReceived, LastSent: s.Info.LastSent, RTT: s.Info.RTT,
	})
}

// Conns returns the connections that the latest sample has shown, with Config.CloseIdle. The
// slice is valid until the next sample.
func (t *Tracker) Conns() []Conn { return t.shown }

// NoteShut notes that a connection has been shut down for reading: the program may leave unread
// what still comes, and the silence after the last byte is ShutSilence.
func (t *Tracker) NoteShut(cookie uint64) {
	if c := t.conns[cookie]; c != nil {
		c.shut = true
	}
}
