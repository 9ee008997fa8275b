package letgo

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Figures are for the report.
type Figures struct {
	Closed   int // kept connections that were closed while idle
	Notified int // connections on which GOAWAY was sent
	CameBack int // of their peers, how many have connected since
	InPod    int // of these, over loopback: a proxy

	Hindrance Hindrance // why no kept connection in use was closed

	Answered    []Server // that were asked what they speak
	GoawayPorts []uint16 // of these, whose clients are sent GOAWAY
}

// Hindrance is why kept connections are not closed.
type Hindrance uint8

// The hindrances. Of several connections the last of these counts.
const (
	NotHindered    Hindrance = iota // or none is in use
	FarAway                         // the clients
	SeveralAtATime                  // requests on a connection, as it seems
	FewCycles                       // of evenCycles
	NeverIdle                       // for long enough
)

// Asker follows the connections that clients keep, from sample to sample.
type Asker struct {
	cfg        Config
	now        ledger.Moment
	noneNewFor time.Duration // in the latest sample; zero in an incomplete one
	resets     [2]uint64     // ledger.Rest.Resets of the latest two complete samples: an event is a sample late

	kept    map[uint64]*Kept // by cookie
	open    int              // of those that were closed, how many the server has not closed in turn
	clients map[netip.Addr]*client
	servers map[netip.AddrPort]*Server

	askedAt  ledger.Moment // the latest question
	requests int           // on connections whose clients were asked
	figures  Figures
}

// Config is which connections an Asker follows: none without a port, or Auto, in Goaway.
type Config struct {
	QuietFor  time.Duration // how long silence must last
	CloseIdle bool          // kept connections are closed while they are idle
	Goaway    []uint16      // the local ports on which GOAWAY is sent instead, where HTTP/2 is spoken
}

// Auto is no port: in Config.Goaway it stands for those on which nothing but HTTP/2 is spoken.
const Auto uint16 = 0

// New returns an Asker.
func New(cfg Config) *Asker {
	return &Asker{
		cfg: cfg, kept: map[uint64]*Kept{}, clients: map[netip.Addr]*client{}, servers: map[netip.AddrPort]*Server{},
	}
}

// Figures returns the figures up to the latest sample.
func (a *Asker) Figures() Figures {
	f := a.figures
	if f.Closed > 0 {
		return f
	}
	for _, k := range a.kept {
		if k.server.way == closing && a.inUseLately(k) {
			proof := k.server.usual.proof
			of := NeverIdle
			switch {
			case !k.isNear():
				of = FarAway
			case proof < 0:
				of = SeveralAtATime
			case proof < evenCycles:
				of = FewCycles
			}
			f.Hindrance = max(f.Hindrance, of)
		}
	}
	return f
}

// follows reports whether clients that keep connections to a port may be asked to choose again.
func (a *Asker) follows(port uint16) bool {
	return a.cfg.CloseIdle || slices.Contains(a.cfg.Goaway, Auto) || slices.Contains(a.cfg.Goaway, port)
}

// Update tells the Asker about a sample, and for how long nothing new had come.
func (a *Asker) Update(sample *ledger.Sample, noneNewFor time.Duration) {
	a.now = sample.Now
	a.open = 0
	for i := range sample.Others {
		o := &sample.Others[i]
		if k := a.kept[o.Cookie]; k != nil {
			k.noteEnd(o.State)
		}
	}
	for _, c := range sample.Conns {
		if c.Side != ledger.Clients || c.Fate != ledger.Shown && c.Fate != ledger.Closed || !a.follows(c.Local.Port()) {
			continue
		}
		peer := c.Remote.Addr()
		from := a.addClient(peer)
		if c.New && c.Before.Seen == 0 && from.away > 0 {
			from.noteBack()
			a.figures.CameBack++
			if peer.IsLoopback() {
				a.figures.InPod++
			}
		}
		a.follow(c, from)
	}
	a.noneNewFor = noneNewFor
	if sample.Incomplete {
		return
	}
	isReset := sample.Uncounted != nil || sample.Resets != a.resets[0]
	a.resets = [2]uint64{a.resets[1], sample.Resets}
	maps.DeleteFunc(a.kept, func(_ uint64, k *Kept) bool {
		if k.Listed == a.now {
			return false
		}
		k.noteMissing(isReset)
		return true
	})
}

// inUseLately reports whether bytes moved lately, and since the trigger, on an open connection.
func (a *Asker) inUseLately(k *Kept) bool {
	return k.IsOpen() && k.Moved > ledger.Trigger && a.now-k.Moved < a.cfg.QuietFor
}

// follow notes what has happened on a connection. One without a cookie, or that no sample has
// shown open, is not followed.
func (a *Asker) follow(c *ledger.Conn, from *client) {
	k := a.kept[c.Cookie]
	isOpen := c.IsOpen()
	switch {
	case k == nil && isOpen && c.Cookie != 0:
		k = &Kept{Conn: c, server: a.addServer(c), from: from, since: a.now}
		a.kept[c.Cookie] = k
	case k != nil:
		k.Conn = c
		k.noteEnd(c.State)
		if !isOpen {
			break
		}
		shown, idle := k.update(a.now)
		k.server.usual.note(a.now, shown, idle)
		k.server.hot.note(a.now, shown, idle)
		if k.asked() && k.In.Bytes > 0 {
			a.requests++
		}
		if k.isLeaving() {
			a.open++
		}
	}
}

// addClient returns the client at an address, and adds one that is not known.
func (a *Asker) addClient(peer netip.Addr) *client {
	if a.clients[peer] == nil {
		a.clients[peer] = &client{}
	}
	return a.clients[peer]
}

// watchFor is how long before the first question connections are watched: in dense traffic that
// is time for the cycles that a server has to show.
const watchFor = time.Second

// maySoonAsk reports whether the client of a connection may soon be asked: one that is in use may be
// closed while it is idle.
func (a *Asker) maySoonAsk(k *Kept) bool {
	if k.asked() || k.State != tcp.Established || a.noneNewFor < k.from.patience()-watchFor {
		return false
	}
	switch k.server.way {
	case notice:
		return k.Accepted && k.HasInfo
	case closing:
		return a.inUseLately(k) && k.isNear() && k.from.reset < maxReset && k.server.usual.idle < a.cfg.QuietFor
	}
	return false
}

// giveUp is for how many times quietFor connections are watched of which none can be closed: that
// costs some percent of a processor.
const giveUp = 4

// waitsSince returns since when the next question waits for its moment: the latest question, or a
// second after the latest new connection.
func (a *Asker) waitsSince() ledger.Moment {
	return max(a.now-a.noneNewFor+time.Second, a.askedAt)
}

// Watching reports whether samples should be frequent.
func (a *Asker) Watching() bool {
	for _, k := range a.kept {
		if a.maySoonAsk(k) {
			return a.now-a.waitsSince() < giveUp*a.cfg.QuietFor
		}
	}
	return false
}

// A client's next request goes to the connection that has been idle the longest, or the shortest.
// Those at both ends, a quarter each, are closed when they have been idle for rarelyIdle, or when
// nothing could be closed for waitForOthers: as measured, 24 connections of Go's Transport lost 5
// requests in 12 stops without this rule, and none in 24 with it. When nothing could be closed for
// waitForAll, those that are left may be too busy to be idle for longer than a jiffy.
const (
	rarelyIdle    = 120 * time.Millisecond
	waitForOthers = 500 * time.Millisecond
	waitForAll    = time.Second
)

// ToAsk returns the connections on which the client may be asked, for MayAsk: those on which GOAWAY may
// be sent soon, in random order, since there may not be time for all; and those that the latest sample
// shows idle for certain.
func (a *Asker) ToAsk() (list []*Kept) {
	for _, k := range a.kept {
		isWanted := k.server.way == notice && a.maySoonAsk(k) && a.noneNewFor >= k.from.patience()
		if isWanted && k.Seen == a.now && k.Info.LastSent+soon >= a.leastSilence(k) {
			list = append(list, k)
		}
	}
	for _, p := range a.clients {
		if a.mayClose(p) {
			return append(list, a.idle()...)
		}
	}
	return list
}

// manyIdle is more idle connections than can be closed until the next sample. Which they are is random.
const manyIdle = 1000

// idle returns the connections that may be closed, of those that are idle. The first is the one
// whose idle time is the median.
func (a *Asker) idle() (may []*Kept) {
	var idle []*Kept
	for _, k := range a.kept {
		if len(idle) < manyIdle && k.server.way == closing && k.Seen == a.now && !k.asked() && k.answered() {
			idle = append(idle, k)
		}
	}
	slices.SortFunc(idle, func(a, b *Kept) int {
		return cmp.Or(cmp.Compare(a.idleFor(), b.idleFor()), cmp.Compare(a.Cookie, b.Cookie))
	})
	waited := a.now - a.waitsSince()
	end := (len(idle) + 3) / 4
	if waited >= waitForOthers {
		end = 0
	}
	for i, k := range idle {
		isEnd := min(i, len(idle)-1-i) < end
		isReserved := isEnd && k.idleFor() < rarelyIdle
		isLongIdle := k.server.usual.permits(k) || waited >= waitForAll && k.server.hot.permits(k)
		if !isReserved && isLongIdle && k.isNear() {
			may = append(may, k)
		}
	}
	middle := len(may) / 2
	return slices.Concat(may[middle:], may[:middle])
}

// mayClose reports whether a connection of a client may be closed after the latest sample: the client
// may be asked, and of the connections that were closed no more than one is open beyond those
// that the server has closed in turn. A server may keep connections whose clients seem to have
// left, and answer no more.
func (a *Asker) mayClose(p *client) bool {
	return a.open <= a.figures.Closed-a.open && p.mayBeAsked(a.now, a.noneNewFor)
}

// MayAsk reports whether this is the moment to ask the client on a connection of ToAsk, as now is. Before
// GOAWAY the server has read all that has come, the client has acknowledged all that was sent, and the
// server has been silent. A server that had more of a frame to send would have sent it, as long as the
// kernel takes bytes: it takes them when none is unacknowledged. So do Go's net/http and grpc-go (a buffer
// is flushed to its end), nghttp2 and Node (one loop writes until EAGAIN), Netty and hyper (writev of a
// flush), and C-core (sendmsg of all that is queued). A server that computes or waits in the midst of a
// frame would break that, and one that has no processor at that moment: see closer.Ask.
func (a *Asker) MayAsk(k *Kept, now *tcp.Socket) bool {
	if k.server.way == closing {
		return a.mayClose(k.from) && k.IsIdle(now)
	}
	return now.State == tcp.Established && now.Unread == 0 && now.Unsent == 0 && now.Info.LastSent >= a.leastSilence(k)
}

// soon is within how long after a sample GOAWAY may be sent.
const soon = 25 * time.Millisecond

// leastSilence returns how long the server must have sent nothing on a connection before GOAWAY is sent:
// twice as long as its answers pause. In dense traffic no silence is waited for, but where they do.
func (a *Asker) leastSilence(k *Kept) time.Duration {
	if a.now-a.waitsSince() >= waitForAll {
		return 2 * k.pause
	}
	return max(minUnsent, 2*k.pause)
}

// Word returns what is to be sent on a connection to ask the client, GOAWAY; "": the connection is to be
// closed for reading.
func (k *Kept) Word() string {
	if k.server.way == notice {
		return Goaway
	}
	return ""
}

// NoteAsked notes that the client was asked on a connection, as now was. That is done once.
func (a *Asker) NoteAsked(k *Kept, now *tcp.Socket) {
	p := k.from
	p.away++
	p.asked, a.askedAt = a.now, a.now
	a.requests += k.requests
	if word := k.Word(); word != "" {
		k.NoteNotice(now, len(word))
		a.figures.Notified++
		return
	}
	k.NoteShut()
	a.figures.Closed++
	a.open++
	p.stay++
}

// AwaitsClients reports whether samples should have sockets in TIME_WAIT: those of clients that
// have closed connections in turn.
func (a *Asker) AwaitsClients() bool {
	for _, p := range a.clients {
		if p.stay > 0 {
			return true
		}
	}
	return false
}

// The silence after the last byte on connections that were closed.
const (
	minGaps    = 10 // mean gaps between their requests in the hold
	minSilence = time.Second
)

// Silence returns how long a silence after the last byte on closed connections must last. Their
// clients have chosen again: a further request can only come on a new connection, or on one that
// was not closed. Only thin traffic may have pauses that are longer.
func (a *Asker) Silence() time.Duration {
	if a.requests == 0 {
		return a.cfg.QuietFor
	}
	return min(max(minSilence, minGaps*(a.now-ledger.Trigger)/time.Duration(a.requests)), a.cfg.QuietFor)
}
