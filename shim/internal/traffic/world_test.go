package traffic

import (
	"cmp"
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
	unreadAt time.Duration // from when on
	unsent   uint32
	notSent  uint32
	pureACKs uint32
	pingPong bool
	tie      bool // of the last request and response: the kernel's ages are equal
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
		Unsent: l.unsent, Cookie: l.id, HasInfo: !l.shown.withoutInfo, Inode: 1,
	}
	if now >= l.unreadAt {
		sock.Unread = l.unread
	}
	if l.accepted < 0 || now < l.accepted {
		sock.Inode = 0
	}
	age := now - l.open
	sock.Info = tcp.Info{LastSent: age, LastReceived: age, LastAcked: age}
	sock.Info.NotSent, sock.Info.PureACKs, sock.Info.PingPong = l.notSent, l.pureACKs, l.pingPong
	for _, m := range l.moves {
		switch {
		case m.at > now:
		case m.bytes > 0:
			sock.Info.Received += uint64(m.bytes)
			sock.Info.Segments++
			sock.Info.LastReceived = now - m.at
		default:
			sock.Info.Sent += uint64(-m.bytes)
			sock.Info.SentSegments++
			sock.Info.LastSent = now - m.at
			sock.Info.LastAcked = sock.Info.LastSent
			if !l.tie {
				sock.Info.LastAcked -= min(s(0.001), now-m.at)
			}
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
	lives  []life
	events bool          // events report ends
	late   time.Duration // how late events are read
	lag    time.Duration // how much longer than Config.Poll the interval is

	waiting    int           // connections in the listener's queue
	queued     span          // as long as they wait
	incomplete span          // the samples that are
	missed     span          // when connections may have been missed
	source     time.Duration // when the source changes
	counted    []move        // Rest.Accepted
	opened     []move        // Rest.Opened
	segments   bool          // Rest.Segments
}

// span is a length of time, without its end.
type span struct{ from, to time.Duration }

func (s span) has(now time.Duration) bool { return s.from <= now && now < s.to }

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
	if w.queued.has(now) {
		listener.Unread = uint32(w.waiting)
	}
	t.Observe(&listener)
	for i := range w.lives {
		if l := &w.lives[i]; !w.incomplete.has(now) && l.open <= now && (l.close == 0 || now < l.close) {
			sock := l.at(now)
			t.Observe(&sock)
		}
	}
	rest := Rest{
		Closed: closed, Incomplete: w.incomplete.has(now), NewSource: w.source > 0 && w.source == now,
		Accepted: figureAt(w.counted, now), Opened: figureAt(w.opened, now), Segments: w.segments,
	}
	if w.missed.has(now) {
		rest.MissedAt = start.Add(now)
	}
	t.End(rest)
}

// figureAt returns the figure of a time, 0 without one.
func figureAt(list []move, now time.Duration) int {
	for _, m := range list {
		if m.at == now {
			return m.bytes
		}
	}
	return 0
}
