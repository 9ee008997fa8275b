package ledger

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// RequestState is the state of the last request on a connection.
type RequestState uint8

// The states.
const (
	Idle     RequestState = iota // no request, or answered
	InFlight                     // the request is coming in, or waits for a response, or the response is going out
	Tie                          // Idle or InFlight: the kernel does not show which
)

// Classify returns the state of the last request on a connection. The kernel's counters
// and ages distinguish a slow request from an idle connection without reading a byte. The
// first line that applies decides:
//
//	a listener, or TIME_WAIT                                      idle
//	the peer no longer answers                                    idle
//	unread or unsent bytes                                        in flight
//	no tcp_info, nothing received, or closed by the program       idle
//	nothing sent, or received later than sent                     in flight
//	sent later than received, or only one data segment received   idle
//	both in one jiffy, last ACK later by < 0.8 s                  idle
//	both in one jiffy, < 0.8 s ago                                a tie
//	half-closed by the peer, both in one jiffy                    a tie
//	both in one jiffy, last ACK >= 0.8 s after it, PingPong       idle
//	both in one jiffy, PingPong, pure ACKs and segments as usual  idle
//	both in one jiffy                                             a tie
//
// The kernel counts ages in jiffies. A request received in the jiffy of the previous
// response acknowledged the response in the same jiffy; a nearby peer does so without a
// request too. The local side then decides: a response acknowledges its request, whereas
// a waiting request got a pure ACK. A delayed pure ACK ends ping-pong mode; the ACK is not
// delayed if the request came in several segments, which [Usual] can tell. A FIN begins
// ping-pong mode. An ACK that came long after both answered a keep-alive probe of our
// side, a pure ACK as well.
func Classify(s *tcp.Socket, usual Usual) RequestState {
	switch {
	case s.State == tcp.Listen || s.State == tcp.TimeWait || s.PeerGone():
		return Idle
	case s.Unread > 0 || s.Unsent > 0:
		return InFlight
	}
	return LastRequest(s, usual)
}

// LastRequest returns the state by the counters and ages alone, of empty queues.
func LastRequest(s *tcp.Socket, usual Usual) RequestState {
	info := &s.Info
	switch {
	case !s.HasInfo || !s.IsOpen() || info.Received == 0:
		return Idle
	case info.Sent == 0 || info.LastReceived < info.LastSent:
		return InFlight
	case info.Segments == 1 || info.LastReceived != info.LastSent:
		return Idle
	case info.LastAcked < info.LastSent && !ackedLate(s):
		return Idle
	case info.LastSent < maxDelayedACK || s.State == tcp.CloseWait:
		return Tie
	case info.PingPong && (ackedLate(s) || usual.answered(info)):
		return Idle
	}
	return Tie
}

// Usual is what the connections of a container without a waiting request have in common.
type Usual struct {
	PureACKs uint32 // at most 1
	Excess   uint32 // how many more segments were received than sent: 0, or 1
}

// Learn adds a connection.
//
// The kernel acknowledges the first segment of each connection by a pure ACK
// (tcp_event_data_recv in net/ipv4/tcp_input.c), unless the program has turned quick
// ACKs off (TCP_QUICKACK in tcp(7), as HAProxy does), proven by a connection without pure
// ACKs. Pure ACKs on every connection are no proof, hence the question for PingPong.
//
// A client's handshake of TLS may take one segment more than the server's, proven by a
// connection whose response is known to be sent later than its request.
func (u *Usual) Learn(s *tcp.Socket) {
	info := &s.Info
	if !s.HasInfo || info.Received == 0 || info.Sent == 0 {
		return
	}
	u.PureACKs = min(u.PureACKs, info.PureACKs)
	if info.LastSent < info.LastReceived && info.Segments == info.SentSegments+1 && info.SentSegments > 0 {
		u.Excess = 1
	}
}

// answered reports whether the last request of several segments, if there was one, has
// been answered. More segments received than usual may be a request of several segments,
// and fewer mean responses of several segments, which hide the segments of a request.
func (u *Usual) answered(info *tcp.Info) bool {
	switch {
	case info.PureACKs == 0:
		return true
	case info.Segments == 0 || info.Segments > info.SentSegments+u.Excess:
		return false
	}
	return info.PureACKs <= u.PureACKs || info.SentSegments <= info.Segments+1
}

// atServer returns the state of the last request without the ACK of the answer, which a client may delay by
// 40 ms.
func (c *Conn) atServer(usual Usual) RequestState {
	state := c.Request
	switch {
	case !c.HasInfo:
		return Tie
	case c.Unread == 0 && c.Unsent > 0 && (c.Info.NotSent == 0 || !c.IsOpen()):
		state = LastRequest(&c.Socket, usual)
	}
	if state == Tie && c.IsEven() {
		return Idle
	}
	return state
}

// IsEven reports whether every request in the life of the connection seems answered: all had the same
// number of segments, as had all answers. An answer that is to come, or several requests in one
// segment, would leave a remainder.
func (c *Conn) IsEven() bool {
	few := min(c.Info.Segments, c.Info.SentSegments)
	many := max(c.Info.Segments, c.Info.SentSegments)
	return few > 0 && many%few == 0 && few > 4*(many/few)
}

// ackedLate reports whether the latest ACK came long after the last response, as that of a
// keep-alive probe does.
func ackedLate(s *tcp.Socket) bool { return s.Info.LastSent-s.Info.LastAcked >= maxDelayedACK }

// maxDelayedACK is longer than the kernel delays an ACK in the hope of a response:
// TCP_DELACK_MAX, at most half a second (include/net/tcp.h, tcp_send_delayed_ack).
const maxDelayedACK = 800 * time.Millisecond

// judgment is the state of the last request in the latest sample with empty queues.
type judgment struct {
	state    RequestState
	alone    bool   // the last request came in one segment, when no other one was in flight
	in, out  uint64 // bytes received and sent by then
	segments uint32 // received by then
}

// MaxControlBytes limits what two ends of HTTP/2 tell each other beside requests and
// responses: a PING and its ACK, of 17 bytes each, or 39 and 46 over TLS.
const MaxControlBytes = 64

// judge notes the state of the last request. PINGs do not end a request, and while no byte
// moves the ACK of a keep-alive probe changes nothing. A PING on an idle connection holds,
// since its ACK looks like a request. Bytes sent again do not count. A waiting request that came alone
// has ended ping-pong mode by now, unless it was followed by what HTTP/2 tells beside responses.
func (c *Conn) judge(usual Usual) {
	s := &c.Socket
	last := c.request
	state := Classify(s, usual)
	if state == Idle && !s.HasInfo && s.IsOpen() { // a request that the source before has shown may still wait
		state = last.state
	}
	if s.PeerGone() || s.Unread > 0 || s.Unsent > 0 || !s.HasInfo || !s.IsOpen() {
		c.Request = state
		c.WaitsSince = c.Moved
		return
	}
	in := c.Received - last.in
	out := c.Sent - last.out
	silent := in == 0 && out == 0
	alone := last.alone
	if in > 0 {
		alone = s.Info.Segments-last.segments == 1 && last.state != InFlight && out > MaxControlBytes
	}
	if state == Tie && alone && s.Info.PingPong && s.Info.LastSent >= maxDelayedACK {
		state = Idle
	}
	isPING := !silent && in == out && out <= MaxControlBytes && last.state != Idle
	c.Request = state
	switch {
	case isPING, silent && (last.state == InFlight || ackedLate(s) || c.Notified): // lameduck has sent last
		c.Request = last.state
	case last.state == InFlight && out == 0 && in <= MaxControlBytes: // a PING, whose ACK is to come
		return
	default:
		c.WaitsSince = c.Moved
	}
	c.request = judgment{c.Request, alone, c.Received, c.Sent, s.Info.Segments}
}

// NoteShut notes that lameduck has closed the connection for reading: the program may leave unread what
// still comes.
func (c *Conn) NoteShut() { c.Shut = true }

// NoteNotice notes that lameduck has written n bytes into the connection, as now was, to ask the client to
// open no further stream: they are no activity, and answer no request.
func (c *Conn) NoteNotice(now *tcp.Socket, n int) {
	before := *c
	before.Socket = *now
	before.Received, before.Sent = c.counters(now)
	before.judge(Usual{}) // which counts in ping-pong mode alone, and now does not tell of that
	c.request = before.request
	c.request.out += uint64(n)
	c.Sent += uint64(n)
	c.Notified = true
}

// noteSilence notes how long the last request has been silent in the hold. A tie in ping-pong mode,
// or of which nothing more will be known, has probably been answered after maxTie.
func (c *Conn) noteSilence(now Moment, maxTie time.Duration) {
	if c.Request == Tie && (c.Info.PingPong || !c.HasInfo) && now >= c.WaitsSince+maxTie {
		c.Request = Idle
		c.request.state = Idle
	}
	if c.Request == InFlight {
		c.Waited = max(c.Waited, now-max(c.Moved, Trigger))
	}
}

// PartlyRead reports whether the program may have read a part of a request whose rest is
// unread. Before the first sample with an empty queue only an untouched first request is
// certain: what was read of a kept connection may have been earlier requests.
func (c *Conn) PartlyRead() bool {
	read := c.Info.Received - min(uint64(c.Unread), c.Info.Received)
	return c.HasInfo && (c.request.state != Idle || read > c.request.in)
}
