package traffic

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// start is the trigger in all tests; other times are counted from it.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// s is seconds.
func s(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// life is a connection in a test: what happens to it, and when.
type life struct {
	peer       string // 10.0.0.1 where empty
	port       uint16 // 80 where zero
	open       time.Duration
	accepted   time.Duration // zero: at once; negative: never
	close      time.Duration // zero: never
	moves      []move        // in the order of time
	state      tcp.State     // instead of Established
	unread     uint32
	unsent     uint32
	id         uint64
	untimed    bool
	unreported bool // no event tells of its end
	blurred    bool // ages are late, as they are in jiffies and a look takes its time
}

// move is bytes received or, where negative, sent.
type move struct {
	at    time.Duration
	bytes int
}

// at is the connection's socket at a time.
func (l *life) at(now time.Duration) tcp.Socket {
	sock := tcp.Socket{
		State:  cmp.Or(l.state, tcp.Established),
		Local:  netip.AddrPortFrom(netip.MustParseAddr("10.0.0.9"), cmp.Or(l.port, 80)),
		Remote: netip.AddrPortFrom(netip.MustParseAddr(cmp.Or(l.peer, "10.0.0.1")), uint16(1024+l.id)),
		Unread: l.unread, Unsent: l.unsent, Cookie: l.id, HasInfo: !l.untimed, Inode: 1,
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
			sock.Info.LastReceived = now - m.at
		default:
			sock.Info.Sent += uint64(-m.bytes)
			sock.Info.LastSent = now - m.at
			sock.Info.LastAcked = now - m.at - min(s(0.001), now-m.at)
		}
	}
	if l.blurred {
		late := time.Duration(rand.New(rand.NewPCG(uint64(now), l.id)).IntN(4e6))
		sock.Info.LastSent, sock.Info.LastReceived = sock.Info.LastSent+late, sock.Info.LastReceived+late
	}
	return sock
}

// world is what there is to see, and who looks.
type world struct {
	Config
	lives  []life
	queue  func(now time.Duration) uint32 // of the listener
	blind  func(now time.Duration) bool   // a look sees not all
	events bool                           // ends are told of
	late   time.Duration                  // and when, after looks have missed them
	lag    time.Duration                  // looks are so much further apart than they should be
}

// until looks until cond holds, and is when that is; or never, which is the limit.
func (w *world) until(limit time.Duration, cond func(Verdict) bool) (time.Duration, *Tracker) {
	w.Poll = cmp.Or(w.Poll, s(0.25))
	w.MaxSilence = cmp.Or(w.MaxSilence, s(30))
	w.QuietFor = cmp.Or(w.QuietFor, s(3))
	for i := range w.lives {
		w.lives[i].id = uint64(i + 1)
	}
	ends := slices.Clone(w.lives)
	slices.SortStableFunc(ends, func(a, b life) int { return cmp.Compare(a.close, b.close) })
	j := New(w.Config, start)
	for now := time.Duration(0); now < limit; now += w.Poll + w.lag {
		for ; len(ends) > 0 && ends[0].close <= now-w.late; ends = ends[1:] {
			if l := ends[0]; w.events && l.close > 0 && !l.unreported {
				sock := l.at(l.close)
				sock.State = tcp.Close
				j.Closed(start.Add(l.close+w.late), &sock)
			}
		}
		if w.look(j, now); cond(j.Verdict()) {
			return now, j
		}
	}
	return limit, j
}

func (w *world) look(j *Tracker, now time.Duration) {
	j.Begin(start.Add(now))
	listener := tcp.Socket{State: tcp.Listen, Local: netip.MustParseAddrPort("0.0.0.0:80")}
	if w.queue != nil {
		listener.Unread = w.queue(now)
	}
	j.Observe(&listener)
	for i := range w.lives {
		if l := &w.lives[i]; l.open <= now && (l.close == 0 || now < l.close) {
			sock := l.at(now)
			j.Observe(&sock)
		}
	}
	j.End(w.blind == nil || !w.blind(now))
}

func settled(v Verdict) bool { return v.Settled }
func quiet(v Verdict) bool   { return v.Quiet }
func drained(v Verdict) bool { return v.Drained }
func stuck(v Verdict) bool   { return v.Stuck }

// every is connections that are all the same but for their time.
func every(period, from, to time.Duration, l life) (list []life) {
	for at := from; at < to; at += period {
		next := l
		next.open, next.close = at, at+l.close
		next.moves = nil
		for _, m := range l.moves {
			next.moves = append(next.moves, move{at + m.at, m.bytes})
		}
		list = append(list, next)
	}
	return list
}
