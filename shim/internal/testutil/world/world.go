// Package world simulates the sockets of a server, for tests of what is decided about them.
package world

import (
	"cmp"
	"io"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Start is the trigger. Other times are relative to Start.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Never is the limit of simulated time: a condition is not met before.
const Never = 60 * time.Second

// Seconds returns a number of seconds as a time.Duration.
func Seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// Life is the course of a connection.
type Life struct {
	Peer     string // default 10.0.0.1
	Port     uint16 // default 80
	Open     time.Duration
	Close    time.Duration // 0: never
	Moves    []Move        // in the order of time
	Vanished time.Duration // when the peer vanished, with a response unacknowledged; 0: never
	Probed   time.Duration // when the peer acknowledged a keep-alive probe; 0: never
	State    tcp.State     // default Established
	Unread   uint32
	Unsent   uint32
	NotSent  uint32
	During   Span          // when these three apply; zero: always
	RTT      time.Duration // default 0.2 ms
	ID       uint64
	Own      bool // a connection of the container to itself
	Shut     bool // lameduck has closed it for reading
	Notified bool // lameduck has sent GOAWAY on it
	Reset    bool // the program has reset it: of the end the kernel knows neither bytes nor the port of the peer

	Unaccepted bool    // by the program
	NoInfo     bool    // no tcp_info
	Unreported bool    // no event reports the end
	PureACKs   *uint64 // in ping-pong mode; nil: those of the kernel
	Blurred    bool    // ages are late, as jiffies and the duration of a sample make ages
}

// Move is a number of bytes received or, if negative, sent.
type Move struct {
	At    time.Duration
	Bytes int
}

// At returns the connection's socket at a time.
func (l *Life) At(now time.Duration) tcp.Socket {
	sock := tcp.Socket{
		State:  cmp.Or(l.State, tcp.Established),
		Local:  netip.AddrPortFrom(netip.MustParseAddr("10.0.0.9"), cmp.Or(l.Port, 80)),
		Remote: netip.AddrPortFrom(netip.MustParseAddr(cmp.Or(l.Peer, "10.0.0.1")), uint16(1024+l.ID)),
		Cookie: l.ID, HasInfo: !l.NoInfo, Inode: 1,
	}
	if l.During == (Span{}) || l.During.has(now) {
		sock.Unread, sock.Unsent, sock.Info.NotSent = l.Unread, l.Unsent, l.NotSent
	}
	if l.Unaccepted {
		sock.Inode = 0
	}
	sock.Info.RTT = cmp.Or(l.RTT, Seconds(0.0002))
	kernel := NewKernel(sock, l.Open)
	for _, m := range l.Moves {
		switch {
		case m.At > now:
		case m.Bytes > 0:
			kernel.Receive(m.At, m.Bytes)
		default:
			kernel.Send(m.At, -m.Bytes)
		}
	}
	sock = kernel.Show(now)
	if l.Probed != 0 && l.Probed <= now {
		sock.Info.LastAcked = now - l.Probed
	}
	if n := l.PureACKs; n != nil {
		sock.Info.PureACKs, sock.Info.PingPong = uint32(*n), true
	}
	if l.Vanished != 0 && l.Vanished <= now {
		l.retransmit(&sock, now)
	}
	if l.Blurred {
		late := time.Duration(rand.New(rand.NewPCG(uint64(now), l.ID)).IntN(4e6))
		sock.Info.LastSent += late
		sock.Info.LastReceived += late
	}
	return sock
}

// retransmit shows what the kernel sends to a peer that Vanished: 200 bytes after 0.2 s,
// 0.4 s, 0.8 s, and so on.
func (l *Life) retransmit(sock *tcp.Socket, now time.Duration) {
	sock.Unsent = 200
	at, wait := l.Vanished+Seconds(0.2), Seconds(0.4)
	for ; at <= now; at, wait = at+wait, 2*wait {
		sock.Info.LastSent = now - at
		sock.Info.Sent += 200
		sock.Info.Resent += 200
		sock.Retries++
	}
}

// ended returns the socket of the event of the connection's end.
func (l *Life) ended() tcp.Socket {
	sock := l.At(l.Close)
	sock.State = tcp.Close
	if l.Reset {
		sock.Remote = netip.AddrPortFrom(sock.Remote.Addr(), 0)
		sock.Unsent, sock.Info = 65538, tcp.Info{LastReceived: 1000 * time.Hour}
	}
	return sock
}

// Hold is the judgment of the latest sample.
type Hold struct {
	traffic.Sample
	Latest      *ledger.Sample
	ShutSilence time.Duration // for the next sample

	tracker *traffic.Tracker
	ledger  *ledger.Ledger
}

// World is a set of connections, and how samples show the connections.
type World struct {
	traffic.Config
	Lives       []Life
	Events      bool                                 // events report ends
	Late        time.Duration                        // how late events are read
	ShutSilence time.Duration                        // default QuietFor
	Lag         time.Duration                        // how much longer than Config.Poll the interval is
	Then        func(h *Hold, now time.Duration)     // called after each sample
	Pause       func() time.Duration                 // between two samples, in place of Config.Poll
	Sockets     func(now time.Duration) []tcp.Socket // besides those of Lives; nil: none

	Incomplete Span          // the samples that are
	Queue      []float64     // so many connections are in the listener's queue, and until when
	Missed     Span          // when connections may have been missed
	ProcNet    Span          // when samples come from /proc/net, which has neither tcp_info nor cookies
	source     bool          // the latest did
	read       time.Duration // when events were read last
	Counted    []Move        // Rest.Accepted
	Opened     []Move        // Rest.Opened
	Segments   bool          // Rest.Segments
	Resets     uint64        // Rest.Resets
	Uncounted  bool          // Rest.Uncounted is an error
	TurnedAway []Span        // Rest.TurnedAway
}

// Span is a length of time, without its end.
type Span struct{ From, To time.Duration }

func (s Span) has(now time.Duration) bool { return s.From <= now && now < s.To }

// Until takes samples until cond holds, and returns when; or limit, if cond never holds, or is nil.
func (w *World) Until(limit time.Duration, cond func(traffic.Verdict) bool) (time.Duration, *Hold) {
	w.Poll = cmp.Or(w.Poll, Seconds(0.25))
	w.MaxSilence = cmp.Or(w.MaxSilence, Seconds(30))
	w.QuietFor = cmp.Or(w.QuietFor, Seconds(3))
	for i := range w.Lives {
		w.Lives[i].ID = uint64(i + 1)
	}
	h := &Hold{tracker: traffic.New(w.Config), ledger: ledger.New(w.Ledger(Start))}
	h.ShutSilence = cmp.Or(w.ShutSilence, w.QuietFor)
	for now := time.Duration(0); now < limit; now += w.Lag {
		w.Sample(h, now)
		if cond != nil && cond(h.Verdict) {
			return now, h
		}
		if w.Pause != nil {
			now += w.Pause()
		} else {
			now += w.Poll
		}
	}
	return limit, h
}

// ends returns the connections whose ends are read up to a time, in the order of the ends.
func (w *World) ends(now time.Duration) (list []*Life) {
	for i := range w.Lives {
		l := &w.Lives[i]
		if read := l.Close + w.Late; w.Events && l.Close > 0 && !l.Unreported && w.read < read && read <= now {
			list = append(list, l)
		}
	}
	slices.SortStableFunc(list, func(a, b *Life) int { return cmp.Compare(a.Close, b.Close) })
	w.read = now
	return list
}

// Sample shows all that is open, and the ends that are read by now.
func (w *World) Sample(h *Hold, now time.Duration) {
	if is := w.ProcNet.has(now); is != w.source {
		w.source = is
		h.ledger.ChangeSource()
	}
	h.ledger.Begin(Start.Add(now))
	listener := tcp.Socket{State: tcp.Listen, Local: netip.MustParseAddrPort("0.0.0.0:80")}
	if w.Queue != nil && now < Seconds(w.Queue[1]) {
		listener.Unread = uint32(w.Queue[0])
	}
	h.ledger.Observe(&listener, ledger.Clients)
	if w.Sockets != nil {
		for _, sock := range w.Sockets(now) {
			h.ledger.Observe(&sock, ledger.Clients)
		}
	}
	for i := range w.Lives {
		if l := &w.Lives[i]; !w.Incomplete.has(now) && l.Open <= now && (l.Close == 0 || now < l.Close) {
			sock := l.At(now)
			if w.source {
				sock.Cookie, sock.HasInfo, sock.Info = 0, false, tcp.Info{}
			}
			side := ledger.Clients
			if l.Own {
				side = ledger.Own
			}
			h.ledger.Observe(&sock, side)
		}
	}
	for _, l := range w.ends(now) {
		sock := l.ended()
		h.ledger.Closed(&sock, Start.Add(l.Close+w.Late), ledger.Clients)
	}
	rest := ledger.Rest{
		Incomplete: w.Incomplete.has(now), TurnedAway: slices.ContainsFunc(w.TurnedAway, func(s Span) bool { return s.has(now) }),
		Accepted: figureAt(w.Counted, now), Opened: figureAt(w.Opened, now), Segments: w.Segments,
		Resets: w.Resets,
	}
	if w.Uncounted {
		rest.Uncounted = io.EOF
	}
	if w.Missed.has(now) {
		rest.MissedAt = Start.Add(now)
	}
	h.Latest = h.ledger.End(rest)
	h.Sample = h.tracker.Judge(h.Latest, h.ShutSilence)
	for _, c := range h.Latest.Conns {
		if i := int(c.Cookie) - 1; i >= 0 && i < len(w.Lives) {
			c.Shut, c.Notified = c.Shut || w.Lives[i].Shut, c.Notified || w.Lives[i].Notified
		}
	}
	if w.Then != nil {
		w.Then(h, now)
	}
}

// figureAt returns the figure of a time, 0 without one.
func figureAt(list []Move, now time.Duration) int {
	for _, m := range list {
		if m.At == now {
			return m.Bytes
		}
	}
	return 0
}
