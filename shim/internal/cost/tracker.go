package cost

import (
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Tracker follows the ports that listen from sample to sample. A sample is a call of Begin, a
// call of Observe for each socket, and a call of End.
type Tracker struct {
	cfg    ledger.Config // what does not count
	result Result
	usual  ledger.Usual

	sample int       // the number of the current sample
	now    time.Time // of the current sample
	lost   int       // resets since the first end of a port, as of the sample before

	serves    map[uint16]bool      // ports that have listened and are not followed
	listens   map[uint16]time.Time // the latest sample in which each port listened
	closedAt  map[uint16]time.Time // when the latest listener of each port closed, by its event
	conns     map[uint64]conn      // open connections, by identity
	recent    []closed             // connections that have closed with a request in flight
	leftovers map[uint64]leftover  // of such connections, by ConnKey
	resets    uint64               // OutRsts at the latest sample without an ended port
	explained int                  // resets since then that refused no connection
	inCounted int                  // those of explained that counted includes
	counted   uint64               // OutRsts at the current sample
	uncounted error                // why counted is not known
	probes    []traffic.Pattern    // health probes, as of the latest sample without an ended port
}

// conn is an open connection in the latest sample that showed it.
type conn struct {
	closed
	segments, sentSegments uint32
	inFlight               bool // a request
	sending                bool // the kernel has more of the response than it may send
	accepted               bool // by the server
}

// closed is a connection that the server's end has closed, or may close.
type closed struct {
	port uint16    // 0: the request was sent from here
	key  uint64    // a ConnKey
	at   time.Time // when; of an open connection, when it was seen last
}

// leftover is what the kernel keeps of a connection that the server has closed, until the
// client closes it too (TIME_WAIT) or sends more, which is answered with a reset.
type leftover struct {
	sample       int // the latest that may show it
	clientClosed bool
}

// Closed is a closed socket as the kernel last knew it.
type Closed struct {
	Socket tcp.Socket
	At     time.Time // when the event was read
}

// justBefore is how long before its port ends a connection may be cut by the same end: the
// processes of a server do not end all at once, and that with the last listener may be late.
const justBefore = 250 * time.Millisecond

// LateEvent is how late the event of a destroyed socket may be: events have low priority.
const LateEvent = 500 * time.Millisecond

// New returns a Tracker that leaves out what cfg ignores. No port listens yet.
func New(cfg ledger.Config) *Tracker {
	return &Tracker{
		cfg: cfg, usual: ledger.Usual{PureACKs: 1},
		serves: map[uint16]bool{}, listens: map[uint16]time.Time{}, closedAt: map[uint16]time.Time{},
		conns: map[uint64]conn{}, leftovers: map[uint64]leftover{},
	}
}

// Begin begins a sample, with OutRsts of /proc/net/snmp, or why it is not known. The events read
// before the counter have been added, and those read afterwards are yet to be.
func (t *Tracker) Begin(now time.Time, resets uint64, uncounted error) {
	t.counted = resets
	t.uncounted = uncounted
	t.inCounted = t.explained
	t.now = now
	t.sample++
	t.result.Returned = nil
}

// Observe adds a socket of any port to the sample; follow says whether to follow the port. The
// caller may reuse s afterwards.
func (t *Tracker) Observe(s *tcp.Socket, follow bool) {
	id := ledger.Identity(s)
	key := ledger.ConnKey(s.Local, s.Remote)
	if _, found := t.leftovers[key]; found && s.State != tcp.Established && s.State != tcp.CloseWait {
		t.leftovers[key] = leftover{sample: t.sample, clientClosed: s.State == tcp.TimeWait}
	}
	if !follow || t.cfg.Ignores(s) {
		switch s.State {
		case tcp.Listen:
			t.serves[s.Local.Port()] = true
		case tcp.Established, tcp.CloseWait:
			t.conns[id] = conn{closed: closed{port: s.Local.Port(), at: t.now}}
		}
		return
	}
	switch s.State {
	case tcp.Listen:
		t.listens[s.Local.Port()] = t.now
	case tcp.Established, tcp.CloseWait:
		t.usual.Learn(s)
		sending := s.HasInfo && s.Info.NotSent > 0
		t.conns[id] = conn{
			closed:   closed{port: s.Local.Port(), key: key, at: t.now},
			segments: s.Info.Segments, sentSegments: s.Info.SentSegments, sending: sending,
			inFlight: s.HasInfo && (s.Unread > 0 || sending || t.waits(s)), accepted: s.Inode != 0,
		}
	default: // closed by the server
		if c, known := t.conns[id]; known {
			c.at = t.now // its event is still to come
			t.conns[id] = c
		}
	}
}

// waits reports whether the last request on a connection with empty queues waits for a
// response. If the kernel's times do not show that, the request is answered, unless segments
// say that there is one request more than responses.
func (t *Tracker) waits(s *tcp.Socket) bool {
	switch ledger.LastRequest(s, t.usual) {
	case ledger.InFlight:
		return true
	case ledger.Tie:
		return s.Info.Segments > s.Info.SentSegments+t.usual.Excess
	}
	return false
}

// NeedsTimeWait reports whether the sample needs the sockets in TIME_WAIT.
func (t *Tracker) NeedsTimeWait() bool { return len(t.leftovers) > 0 }

// Rest is the part of a sample that the list of sockets does not show.
type Rest struct {
	Now        time.Time         // when the list of sockets had been read
	Incomplete bool              // the list could not be read to its end
	Missed     bool              // some events of destroyed sockets were lost
	Probes     []traffic.Pattern // health probes
}

// End ends a sample.
func (t *Tracker) End(rest Rest) {
	if !rest.Incomplete {
		t.dropMissing()
		t.updatePorts(&rest)
		t.countLeftovers()
	}
	t.countCut(rest.Missed)
	t.countRefused()
}

// AddClosed adds the event of a destroyed socket: a listener, or a connection with
// its last tcp_info. A connection that the program has reset has no remote port (tcp_disconnect
// in net/ipv4/tcp.c): one that was never accepted is refused; others are no client's, such as
// those to servers that HAProxy resets when it exits.
func (t *Tracker) AddClosed(e *Closed) {
	s := e.Socket
	id := ledger.Identity(&s)
	before, known := t.conns[id]
	delete(t.conns, id)
	port := s.Local.Port()
	isReset := s.Remote.Port() == 0
	switch {
	case s.Remote.Addr().IsUnspecified():
		t.closedAt[port] = e.At
		return
	case isReset && t.follows(port) && before.accepted && !before.inFlight:
		t.explained++
		return
	case isReset && !t.follows(port):
		// A client here whom we refuse looks the same, if it was never connected (connect(2)).
		if known || !s.Remote.Addr().IsLoopback() && s.Remote.Addr() != s.Local.Addr() {
			t.explained++
		}
		return
	case !t.follows(port):
		waits := s.Info.LastSent < s.Info.LastReceived && !t.serves[port] && !t.follows(s.Remote.Port())
		if waits { // a request of a proxy, whose response will be reset
			t.recent = append(t.recent, closed{0, ledger.ConnKey(s.Local, s.Remote), e.At})
		}
		return
	case t.cfg.Ignores(&s) || isReset && !before.accepted:
		return
	}
	s.State = tcp.Established // as it was: the state of an event is always tcp.Close
	s.Unread, s.Unsent = 0, 0
	sameRequest := known && s.Info.Segments == before.segments
	inFlight := t.waits(&s)
	if isReset || sameRequest && (before.sending || s.Info.SentSegments == before.sentSegments) {
		inFlight = before.inFlight
	}
	if !inFlight {
		return
	}
	c := closed{port, ledger.ConnKey(s.Local, s.Remote), e.At}
	if isReset {
		c.key = before.key
	}
	t.recent = append(t.recent, c)
}

// follows reports whether a port listens, or has listened and ended.
func (t *Tracker) follows(port uint16) bool {
	_, listens := t.listens[port]
	return listens || slices.ContainsFunc(t.result.Ends, func(e End) bool { return e.Port == port })
}

// dropMissing takes connections for closed that samples no longer show, and no event has: where
// many connections close at once, events are lost.
func (t *Tracker) dropMissing() {
	for id, c := range t.conns {
		if t.now.Sub(c.at) < LateEvent {
			continue
		}
		delete(t.conns, id)
		if c.inFlight && c.accepted {
			t.recent = append(t.recent, c.closed)
		}
	}
}
