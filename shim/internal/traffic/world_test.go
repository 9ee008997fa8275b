package traffic

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// start is the trigger in all tests. Other times are relative to start.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// s returns a number of seconds as a time.Duration.
func s(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// life is the course of a connection.
type life struct {
	peer     string // default 10.0.0.1
	port     uint16 // default 80
	open     time.Duration
	accepted time.Duration // 0: at once; negative: never
	close    time.Duration // 0: never
	moves    []move        // in the order of time
	vanished time.Duration // when the peer vanished, with a response unacknowledged; 0: never
	state    tcp.State     // default Established
	unread   uint32
	unsent   uint32
	id       uint64
	shown    shown
}

// shown is how a source shows a connection. The zero value shows everything.
type shown struct {
	withoutInfo bool // no tcp_info
	unreported  bool // no event reports the end
	blurred     bool // ages are late, as jiffies and the duration of a sample make ages
}

// move is a number of bytes received or, if negative, sent.
type move struct {
	at    time.Duration
	bytes int
}

// at returns the connection's socket at a time.
func (l *life) at(now time.Duration) tcp.Socket {
	sock := tcp.Socket{
		State:  cmp.Or(l.state, tcp.Established),
		Local:  netip.AddrPortFrom(netip.MustParseAddr("10.0.0.9"), cmp.Or(l.port, 80)),
		Remote: netip.AddrPortFrom(netip.MustParseAddr(cmp.Or(l.peer, "10.0.0.1")), uint16(1024+l.id)),
		Unread: l.unread, Unsent: l.unsent, Cookie: l.id, HasInfo: !l.shown.withoutInfo, Inode: 1,
	}
	if l.accepted < 0 || now < l.accepted {
		sock.Inode = 0
	}
	age := now - l.open
	sock.Info = tcp.Info{LastSent: age, LastReceived: age, LastAcked: age}
	for _, m := range l.moves {
		switch {
		case m.at > now:
		case m.bytes > 0:
			sock.Info.Received += uint64(m.bytes)
			sock.Info.Segments++
			sock.Info.LastReceived = now - m.at
		default:
			sock.Info.Sent += uint64(-m.bytes)
			sock.Info.LastSent = now - m.at
			sock.Info.LastAcked = now - m.at - min(s(0.001), now-m.at)
		}
	}
	if l.vanished != 0 && l.vanished <= now {
		l.retransmit(&sock, now)
	}
	if l.shown.blurred {
		late := time.Duration(rand.New(rand.NewPCG(uint64(now), l.id)).IntN(4e6))
		sock.Info.LastSent += late
		sock.Info.LastReceived += late
	}
	return sock
}

// retransmit shows what the kernel sends to a peer that vanished: 200 bytes after 0.2 s,
// 0.4 s, 0.8 s, and so on.
func (l *life) retransmit(sock *tcp.Socket, now time.Duration) {
	sock.Unsent = 200
	at, wait := l.vanished+s(0.2), s(0.4)
	for ; at <= now; at, wait = at+wait, 2*wait {
		sock.Info.LastSent = now - at
		sock.Info.Sent += 200
		sock.Info.Resent += 200
		sock.Retries++
	}
}

// closed returns the event of the connection's end, read at a time.
func (l *life) closed(read time.Duration) Closed {
	sock := l.at(l.close)
	sock.State = tcp.Close
	return Closed{sock, start.Add(read)}
}

// world is a set of connections, and how samples show the connections.
type world struct {
	Config
	lives      []life
	queue      func(now time.Duration) uint32 // of the listener
	incomplete func(now time.Duration) bool   // which samples are
	events     bool                           // events report ends
	late       time.Duration                  // how late events are read
	lag        time.Duration                  // how much longer than Config.Poll the interval is
}

// until takes samples until cond holds, and returns when; or limit, if cond never holds.
func (w *world) until(limit time.Duration, cond func(Verdict) bool) (time.Duration, *Tracker) {
	w.Poll = cmp.Or(w.Poll, s(0.25))
	w.MaxSilence = cmp.Or(w.MaxSilence, s(30))
	w.QuietFor = cmp.Or(w.QuietFor, s(3))
	for i := range w.lives {
		w.lives[i].id = uint64(i + 1)
	}
	ends := slices.Clone(w.lives)
	slices.SortStableFunc(ends, func(a, b life) int { return cmp.Compare(a.close, b.close) })
	t := New(w.Config, start)
	for now := time.Duration(0); now < limit; now += w.Poll + w.lag {
		var closed []Closed
		for ; len(ends) > 0 && ends[0].close <= now-w.late; ends = ends[1:] {
			if l := ends[0]; w.events && l.close > 0 && !l.shown.unreported {
				closed = append(closed, l.closed(l.close+w.late))
			}
		}
		w.sample(t, now, closed...)
		if cond(t.Verdict()) {
			return now, t
		}
	}
	return limit, t
}

// sample shows the tracker all that is open.
func (w *world) sample(t *Tracker, now time.Duration, closed ...Closed) {
	t.Begin(start.Add(now))
	listener := tcp.Socket{State: tcp.Listen, Local: netip.MustParseAddrPort("0.0.0.0:80")}
	if w.queue != nil {
		listener.Unread = w.queue(now)
	}
	t.Observe(&listener)
	for i := range w.lives {
		if l := &w.lives[i]; l.open <= now && (l.close == 0 || now < l.close) {
			sock := l.at(now)
			t.Observe(&sock)
		}
	}
	t.End(Rest{Incomplete: w.incomplete != nil && w.incomplete(now), Closed: closed})
}

func settled(v Verdict) bool { return v.Settled }
func quiet(v Verdict) bool   { return v.Quiet }
func drained(v Verdict) bool { return v.Drained }
func stuck(v Verdict) bool   { return v.Stuck }

// every returns connections equal to l but for their times.
func every(period, from, to time.Duration, l life) (list []life) {
	for at := from; at < to; at += period {
		next := l
		next.open = at
		next.close = at + l.close
		next.moves = nil
		for _, m := range l.moves {
			next.moves = append(next.moves, move{at + m.at, m.bytes})
		}
		list = append(list, next)
	}
	return list
}

// answered returns an idle keep-alive connection with one response.
func answered(at float64) life {
	return life{open: s(at), moves: []move{{s(at), 100}, {s(at + 0.01), -200}}}
}

// webSocket returns a connection with a message and a response every second.
func webSocket(until float64) life {
	l := life{open: s(-100), moves: []move{{s(-100), 100}, {s(-99), -100}}}
	for at := -10.0; at <= until; at++ {
		l.moves = append(l.moves, move{s(at), 5}, move{s(at) + s(0.001), -5})
	}
	return l
}

func withoutInfo(l life) life {
	l.shown.withoutInfo = true
	return l
}

// oneWay returns a stream of a byte every so often, on which the program never sends.
func oneWay(open, period, until float64) life {
	l := life{open: s(open)}
	for at := open; at <= until; at += period {
		l.moves = append(l.moves, move{s(at), 9})
	}
	return l
}

// differing returns short connections, in so many seconds, that all differ in the bytes
// received or in the peer.
func differing(n int, seconds float64) (list []life) {
	for i := range n {
		at := seconds * float64(i) / float64(n)
		list = append(list, life{peer: fmt.Sprintf("10.0.2.%d", i%250), open: s(at), close: s(at + 0.02), moves: []move{{s(at + 0.002), 100 + i/250}, {s(at + 0.01), -200}}})
	}
	return list
}

// alternating gives every other connection 25 more bytes that the program does not read,
// and the others a byte less.
func alternating(list []life) []life {
	for i := range list {
		if i%2 == 0 {
			list[i].moves = append(list[i].moves, move{list[i].close, 25})
			list[i].unread = 25
		} else {
			list[i].moves[0].bytes--
		}
	}
	return list
}

// polling returns the connections of clients that each send the same request at the same
// period.
func polling(clients int, period, until float64) (list []life) {
	for i := range clients {
		for _, l := range everyProbe(period, period*float64(i)/float64(clients), until) {
			l.peer = fmt.Sprintf("10.0.1.%d", i)
			list = append(list, l)
		}
	}
	return list
}

// probing returns the connections of a health probe with a period in seconds.
func probing(period float64) []life { return everyProbe(period, 0, 60) }

func everyProbe(period, from, to float64) []life {
	return every(s(period), s(from), s(to), life{close: s(0.004), moves: []move{{s(0.001), 77}, {s(0.002), -100}}})
}
