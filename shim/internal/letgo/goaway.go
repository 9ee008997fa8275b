package letgo

import (
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Goaway is the frame by which a server of HTTP/2 that wants to leave asks the client to open no
// further stream: GOAWAY of the highest stream, with NO_ERROR (RFC 9113, section 6.8). The client
// ends the streams that are open, and connects again, through its balancer. No stream is lost that is
// on its way, in contrast to a request on a connection that is closed. With two bytes of debug data
// the third byte, of the length, is a line feed: a client of HTTP/1.1 reads a line that is none, and
// leaves at once, rather than when the server answers.
var Goaway = []byte{0, 0, '\n', 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, '\r', '\n'}

// HTTP2 is a connection to a port of --goaway, as the latest sample showed it.
type HTTP2 struct {
	*ledger.Conn
	seen     ledger.Moment // the latest sample with the connection
	requests int           // or fewer: samples may show several as one

	client     *client       // of a connection on which GOAWAY was sent
	sentAt     ledger.Moment // GOAWAY
	sent       uint64        // bytes, GOAWAY included
	received   uint64        // bytes, before GOAWAY
	awaited    bool          // an answer to come
	isCertain  bool          // of awaited
	answeredAt ledger.Moment // the first sample since with more bytes sent; 0: none
}

// spoken is what the first connections on which GOAWAY was sent have shown of a port.
type spoken struct {
	isHTTP2, isOther bool
	latest           *HTTP2 // GOAWAY was sent on it, and neither was known
}

// Limits of GOAWAY.
const (
	// minUnsent is how long a server must have sent nothing.
	minUnsent = 5 * time.Millisecond
	// silentFor is how long a connection on which a server has sent nothing for minUnsent is waited
	// for. In dense traffic there may be none.
	silentFor = time.Second
	// searchFor is how long samples are frequent since GOAWAY was sent last.
	searchFor = 5 * time.Second
	// awaitFor is how long a connection with a request that waits is searched for, to be the first on
	// a port: it shows for certain whether the client understands.
	awaitFor = 500 * time.Millisecond
	// minAnswer is longer than a client takes to reset a connection whose bytes it does not understand.
	minAnswer = 10 * time.Millisecond
	// goesOnFor is how long a client that understands keeps a connection, once the server has answered.
	goesOnFor = 50 * time.Millisecond
	// leavesIn is how soon a client that understands leaves after the last answer. Others may time out.
	leavesIn = 200 * time.Millisecond
	// misread is more than the 2567 bytes for which a client waits to whom the beginning of the frame is
	// the length of a message, as it is in the protocols of Kafka and Thrift.
	misread = 4096
)

// followHTTP2 notes what has happened on a connection to a port of --goaway.
func (a *Asker) followHTTP2(c *ledger.Conn) {
	k, isKnown := c.Memo.(*HTTP2)
	switch {
	case isKnown:
	case !ledger.IsOpen(&c.Socket) || c.Cookie == 0:
		return
	default:
		k = &HTTP2{}
		c.Memo = k
		a.http2 = append(a.http2, k)
	}
	k.Conn = c
	k.seen = a.now
	if isKnown && c.Received > c.Before.Received {
		k.requests++
		if k.client != nil {
			a.addRequests(1)
		}
	}
	if p := a.spokenOn(k); k.client != nil && !p.isHTTP2 && !p.isOther {
		p.isHTTP2, p.isOther = k.judge(a.now)
	}
}

// judge reports what a connection has shown since GOAWAY was sent. A client that does not understand
// leaves a request that waits, and what the server sends then is lost: all of it, if that is an alert
// of TLS, or more than the few bytes that may come too late for a client that leaves. Or it waits for
// the rest of a message, is silent, or sends further requests. Every other client waits for the answer,
// and leaves then, or goes on with what it had begun. What is left is not known: an idle client leaves,
// and one that leaves by a reset, as HAProxy does, may have read all or nothing.
func (k *HTTP2) judge(now ledger.Moment) (isHTTP2, isOther bool) {
	since := k.Sent - min(k.sent, k.Sent)
	if since > 0 && k.answeredAt == 0 {
		k.answeredAt = now
	}
	received := k.Received - min(k.received, k.Received)
	asksNoMore := received <= ledger.MaxControlBytes
	if k.Fate != ledger.Closed {
		goesOn := since > misread || asksNoMore && k.Sent > k.Before.Sent
		understands := k.awaited && goesOn || asksNoMore && received > 0
		isOver := since > 0 && now-k.answeredAt >= goesOnFor+2*k.Info.RTT
		return understands && isOver && k.State == tcp.Established, false
	}
	sent := k.Info.Sent - k.Info.Resent
	lost := sent - min(k.Info.Acked, sent)
	isReset := lost == 0 && k.HasInfo && k.Info.Acked == sent // the FIN was not acknowledged
	isOther = lost > ledger.MaxControlBytes || k.isCertain && since <= lost
	waited, left := k.Moved-k.sentAt, k.Ended-k.Moved
	return since > 0 && !isOther && !isReset && k.awaited && asksNoMore &&
		waited >= minAnswer+2*k.Info.RTT && left <= leavesIn+2*k.Info.RTT, isOther
}

func (a *Asker) spokenOn(k *HTTP2) *spoken {
	port := k.Local.Port()
	if a.spoken[port] == nil {
		a.spoken[port] = &spoken{}
	}
	return a.spoken[port]
}

// NotHTTP2 returns the ports of --goaway on which something else is spoken.
func (a *Asker) NotHTTP2() (ports []uint16) {
	for port, p := range a.spoken {
		if p.isOther {
			ports = append(ports, port)
		}
	}
	return tcp.PortSet(ports)
}

// endHTTP2 ends a sample.
func (a *Asker) endHTTP2() {
	a.http2 = slices.DeleteFunc(a.http2, func(k *HTTP2) bool {
		if k.seen != a.now && k.client == nil {
			k.Memo = nil // a sample may have missed it
		}
		return k.seen != a.now || k.Fate == ledger.Closed
	})
	switch isWanted := slices.ContainsFunc(a.http2, a.mayNotify); {
	case !isWanted:
		a.wantedSince = 0
	case a.wantedSince == 0:
		a.wantedSince = a.now
	}
}

// mayNotify reports whether GOAWAY may be sent on a connection, at the right moment.
func (a *Asker) mayNotify(k *HTTP2) bool {
	return k.client == nil && k.State == tcp.Established && k.Accepted && k.HasInfo &&
		!a.spokenOn(k).isOther && a.noneNewFor >= a.clientAt(k.Remote.Addr()).patience()
}

// isNext reports whether it is a connection's turn. As long as a port has not shown that HTTP/2 is
// spoken, that is one connection at a time, with a request that waits if there is one.
func (a *Asker) isNext(k *HTTP2, awaits bool) bool {
	p := a.spokenOn(k)
	since := a.wantedSince
	if p.latest != nil && p.latest.Fate == ledger.Shown {
		since = max(since, p.latest.sentAt+slowToLeave)
	}
	return p.isHTTP2 || !a.isPending(k) && (awaits || a.now-since >= awaitFor)
}

// isPending reports whether another connection is to show first what is spoken.
func (a *Asker) isPending(k *HTTP2) bool {
	p := a.spokenOn(k)
	return !p.isHTTP2 && p.latest != nil && p.latest.Fate == ledger.Shown && a.now-p.latest.sentAt < slowToLeave
}

// Notifying reports whether samples should be frequent, to send GOAWAY.
func (a *Asker) Notifying() bool { return a.wantedSince != 0 && a.now-a.wantedSince < searchFor }

// ToNotify returns the connections on which GOAWAY may be sent, at the moment that MayNotify finds.
func (a *Asker) ToNotify() []*HTTP2 {
	return slices.DeleteFunc(slices.Clone(a.http2), func(k *HTTP2) bool { return !a.mayNotify(k) || a.isPending(k) })
}

// MayNotify reports whether this is the moment to send GOAWAY on a connection of ToNotify, as now is:
// the server has read all that has come, and the client has acknowledged all that was sent. A server
// that had more of a frame to send would have sent it, as long as the kernel takes bytes: it takes
// them when none is unacknowledged. So do Go's net/http and grpc-go (a buffer is flushed to its end),
// nghttp2 and Node (one loop writes until EAGAIN), Netty and hyper (writev of a flush), and C-core
// (sendmsg of all that is queued). A server that computes or waits in the midst of a frame would break
// that, and one that has no processor at that moment: see closer.Write.
func (a *Asker) MayNotify(k *HTTP2, now *tcp.Socket) bool {
	least := minUnsent
	if a.now-a.wantedSince >= silentFor {
		least = 0
	}
	awaits, _ := k.awaits(now)
	return a.mayNotify(k) && a.isNext(k, awaits) &&
		now.State == tcp.Established && now.Unread == 0 && now.Unsent == 0 && now.Info.LastSent >= least
}

// awaits reports whether a request has come since the sample and seems to wait. If the server has
// sent a few bytes meanwhile, they may be the answer, or a WINDOW_UPDATE and a PING.
func (k *HTTP2) awaits(now *tcp.Socket) (isWaiting, isCertain bool) {
	sent := now.Info.Sent - now.Info.Resent - k.Sent
	isWaiting = now.Info.Received > k.Received+ledger.MaxControlBytes && sent <= ledger.MaxControlBytes
	return isWaiting, isWaiting && sent == 0
}

// NoteNotified notes that GOAWAY has been sent on a connection, as now was, so long after the sample.
func (a *Asker) NoteNotified(k *HTTP2, now *tcp.Socket, after time.Duration) {
	k.awaited, k.isCertain = k.awaits(now)
	k.NoteNotice(now, a.usual, len(Goaway))
	k.sentAt, k.sent = a.now+after, now.Info.Sent-now.Info.Resent+uint64(len(Goaway))
	k.received = now.Info.Received
	k.client = a.clientAt(k.Remote.Addr())
	k.client.noteClosed(a.now)
	a.spokenOn(k).latest = k
	a.wantedSince = a.now
	a.figures.Notified++
	a.addRequests(k.requests)
}
