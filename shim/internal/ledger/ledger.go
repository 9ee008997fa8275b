package ledger

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Config is what a Ledger has to know of its readers.
type Config struct {
	Start       time.Time // the trigger
	IgnorePorts []uint16  // local ports
	IgnorePeers []netip.Prefix
	LostAfter   time.Duration // how long an event may report the end of a connection that is missing
	MaxTie      time.Duration // how long after its last byte a Tie in ping-pong mode becomes Idle
}

// Ledger follows connections from sample to sample.
type Ledger struct {
	cfg    Config
	sample Sample           // the current
	conns  map[uint64]*Conn // by identity
	shown  int              // of conns, in the sample, and not closed since

	lacking        map[uint64]*Conn // those in the sample that need their Info.PingPong, by ConnKey
	pingPongReadAt time.Time
}

// Sample is what a sample shows. The slices are valid until the next one.
type Sample struct {
	Start    time.Time // the trigger
	At       time.Time // when the sample began
	Now      Moment    // At
	Previous Moment    // when the sample before began
	Conns    []*Conn   // those shown, in their order, then those that have ended
	Others   []Other
	Usual    Usual

	Baseline bool // of a source no sample is known: connections may be older than the trigger
	Rest
}

// Other is a socket that is no connection: a listener, a connection that is half open, or what
// the kernel keeps of a closed connection until the peer closes too (see sock_diag(7)); in the
// state tcp.Close a listener that was closed, as an event has reported.
type Other struct {
	tcp.Socket
	Side Side
	At   time.Time // of an event: when it was read
}

// Rest is the part of a sample that sockets do not show.
type Rest struct {
	Incomplete bool // the list of sockets could not be read to its end: nothing is known to be missing

	ReadAt   time.Time // when the list of sockets had been read
	MissedAt time.Time // the latest time at which connections may have been missed: activity; zero: never
	Opened   int       // connections accepted since the previous sample, events of which will come; 0: unknown
	Accepted int       // connections the kernel accepted since the start, if new; 0: unknown, or as before
	Segments bool      // TCP segments have arrived in the network namespace since the previous sample

	TurnedAway bool // since the previous sample clients came to a full accept queue of the network namespace

	Resets    uint64 // sent in the network namespace when the sample began: OutRsts of /proc/net/snmp
	Uncounted error  // why Resets is not known
}

// Moment returns a time as a Moment.
func (s *Sample) Moment(at time.Time) Moment { return Trigger + at.Sub(s.Start) }

// Time returns a moment as a time, zero for never.
func (s *Sample) Time(m Moment) time.Time {
	if m == 0 {
		return time.Time{}
	}
	return s.Start.Add(m - Trigger)
}

// New returns an empty Ledger.
func New(cfg Config) *Ledger {
	l := &Ledger{cfg: cfg, lacking: map[uint64]*Conn{}, sample: Sample{Start: cfg.Start, Usual: Usual{PureACKs: 1}}}
	l.ChangeSource()
	return l
}

// Begin begins a sample.
func (l *Ledger) Begin(now time.Time) {
	y := &l.sample
	y.Previous = y.Now
	y.At = now
	y.Now = y.Moment(now)
	y.Baseline = y.Baseline && y.Incomplete
	y.Conns = y.Conns[:0]
	y.Others = y.Others[:0]
	clear(l.lacking)
	l.shown = 0
}

// ChangeSource makes the next sample one of another source, which may identify connections
// differently: those of former samples are known by their ends. A request that is in flight may
// still be when the next source shows none.
func (l *Ledger) ChangeSource() {
	l.sample.Baseline = true
	l.sample.Incomplete = true
	former := l.conns
	l.conns = map[uint64]*Conn{}
	for _, c := range former {
		if c.Seen != 0 && c.Fate < Closed {
			c.request.state = c.Request
			l.conns[c.Ends()] = c
		}
	}
}

// Observe adds a socket to the sample. The caller may reuse s afterwards.
func (l *Ledger) Observe(s *tcp.Socket, side Side) {
	side = l.side(s, side)
	isRemnant := s.State == tcp.FinWait2 && !s.HasInfo && s.Cookie != 0 // which the kernel keeps alone
	switch s.State {
	case tcp.Close, tcp.SynSent:
		return
	case tcp.Established, tcp.CloseWait, tcp.FinWait1, tcp.FinWait2, tcp.LastAck, tcp.Closing:
		if !isRemnant {
			l.observe(s, side)
			return
		}
	}
	if c := l.conns[identity(s)]; c != nil {
		c.Listed = l.sample.Now
	}
	l.sample.Others = append(l.sample.Others, Other{Socket: *s, Side: side})
}

// take returns the connection of a socket. One that was over or lost is another, as is an
// unknown one.
func (l *Ledger) take(s *tcp.Socket) *Conn {
	id := identity(s)
	c := l.conns[id]
	if c == nil { // perhaps of a source without cookies
		ends := s.Ends()
		c = cmp.Or(l.conns[ends], &Conn{})
		delete(l.conns, ends)
		l.conns[id] = c
	}
	if c.Fate >= Closed {
		c = &Conn{decision: c.decision}
		l.conns[id] = c
	}
	return c
}

// observe adds a connection to the sample.
func (l *Ledger) observe(s *tcp.Socket, side Side) {
	y := &l.sample
	c := l.take(s)
	if c.Side != side { // a port has come to count, or the other end was found
		*c = Conn{decision: c.decision}
	}
	if c.Seen != y.Now {
		l.shown++
	}
	c.Listed = y.Now
	if c.Seen == 0 {
		c.New = !y.Baseline
	}
	l.setPingPong(c, s)
	c.update(s, y.Now)
	if c.In.Bytes > 0 {
		c.Waited = 0 // the next request has come
	}
	c.Fate = Shown
	c.Side = side
	c.Seen = y.Now
	y.Conns = append(y.Conns, c)
	if side == Clients {
		y.Usual.Learn(s)
		c.judge(y.Usual)
		c.AtServer = c.atServer(y.Usual)
		c.noteSilence(y.Now, l.cfg.MaxTie)
	}
}

// Closed adds the event of a destroyed socket, read at a time. Many connections are so short
// that no sample shows them. A listener, or a socket that was never connected, has no remote
// address. The kernel keeps no bytes of a connection that the program has reset. The event of a lost
// connection tells nothing more: Java's NIO lets go of a descriptor up to a second after both ends have
// closed. The caller may reuse s afterwards.
func (l *Ledger) Closed(s *tcp.Socket, at time.Time, side Side) {
	y := &l.sample
	side = l.side(s, side)
	if s.Remote.Addr().IsUnspecified() {
		y.Others = append(y.Others, Other{Socket: *s, Side: side, At: at})
		return
	}
	if known := l.conns[s.Cookie]; known != nil && known.Fate == Lost {
		return
	}
	c := l.take(s)
	if c.Seen == y.Now { // the sample has it as it was shown
		ended := *c
		c = &ended
		l.conns[identity(s)] = c
		l.shown--
	}
	c.New = c.New || c.Seen == 0
	c.Ended = y.Moment(at)
	c.update(s, c.Ended)
	c.Fate = Closed
	c.Side = side
	c.Listed = y.Now
	y.Conns = append(y.Conns, c)
}

// End ends a sample, and returns it.
func (l *Ledger) End(rest Rest) *Sample {
	l.sample.Rest = rest
	if !rest.Incomplete {
		l.addMissing()
	}
	return &l.sample
}

// decidedFor is how long after a connection its decided side, or its loss, is remembered, for a late event.
const decidedFor = 5 * time.Second

// addMissing adds to the sample the connections that are not shown, and forgets those of which
// nothing is left. An event may report the end until samples of Config.LostAfter, two at least, have
// not shown a connection.
func (l *Ledger) addMissing() {
	y := &l.sample
	if l.shown == len(l.conns) { // as in nearly all samples
		return
	}
	for id, c := range l.conns {
		switch {
		case c.Seen == y.Now && c.Fate < Closed:
		case c.Fate >= Closed || c.Seen == 0:
			if y.Now != c.Listed && (!c.decision.isMade && c.Fate != Lost || y.Now-c.Listed >= decidedFor) {
				delete(l.conns, id)
			}
		default:
			c.miss(y.Now, l.cfg.LostAfter)
			y.Conns = append(y.Conns, c)
		}
	}
}

// miss notes that a sample does not show the connection. A byte may have moved until it was missed.
func (c *Conn) miss(now Moment, lostAfter time.Duration) {
	if c.missedAt <= c.Seen {
		c.missedAt = now
	}
	c.Fate = Missing
	c.Served = false
	c.Before.Seen, c.Before.Opened = c.Seen, c.Opened
	if now-c.missedAt < lostAfter {
		return
	}
	c.Fate = Lost
	c.Moved = c.missedAt
	if c.New && c.Opened == 0 {
		c.Opened = c.Moved
	}
}

// Decide notes for good whether a socket is that of a connection of the container to itself.
func (l *Ledger) Decide(s *tcp.Socket, isOwn bool) {
	if s.Cookie == 0 { // nothing identifies the socket in later samples
		return
	}
	c := l.conns[s.Cookie]
	if c == nil {
		c = &Conn{Listed: l.sample.Now}
		l.conns[s.Cookie] = c
	}
	c.decision = decision{true, isOwn}
}

// Decided returns what was decided about a socket.
func (l *Ledger) Decided(s *tcp.Socket) (isOwn, isMade bool) {
	if c := l.conns[s.Cookie]; c != nil && s.Cookie != 0 {
		return c.decision.isOwn, c.decision.isMade
	}
	return false, false
}

// side returns Ignored for what Config ignores. A listener has no peer.
func (l *Ledger) side(s *tcp.Socket, side Side) Side {
	from := func(p netip.Prefix) bool { return p.Contains(s.Remote.Addr()) }
	if slices.Contains(l.cfg.IgnorePorts, s.Local.Port()) ||
		s.State != tcp.Listen && slices.ContainsFunc(l.cfg.IgnorePeers, from) {
		return Ignored
	}
	return side
}

// identity returns the kernel's cookie of a connection, or the ConnKey.
func identity(s *tcp.Socket) uint64 {
	if s.Cookie != 0 {
		return s.Cookie
	}
	return s.Ends()
}
