package traffic

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// Config is how to judge traffic.
type Config struct {
	QuietFor    time.Duration // how long silence must last
	MaxSilence  time.Duration // a request without a byte for this long does not hold
	Poll        time.Duration // the interval of samples
	IgnorePorts []uint16      // local ports
	IgnorePeers []netip.Prefix
	Probes      ProbeRule
	Until       stop.Reason // the condition of the hold, for Sample.Cause; "": as stop.Quiet
}

// Ledger returns the configuration of the ledger whose samples are judged.
func (c *Config) Ledger(start time.Time) ledger.Config {
	return ledger.Config{
		Start: start, IgnorePorts: c.IgnorePorts, IgnorePeers: c.IgnorePeers,
		LostAfter: c.Poll, MaxTie: min(max(maxTie, 2*c.QuietFor), c.MaxSilence),
	}
}

// maxTie is how long a tie in ping-pong mode holds after the last byte, or for twice QuietFor.
// Such a request has probably been answered. After 2 s slow requests were cut, and readiness
// probes that come through a proxy may make a new tie each 10 s.
const maxTie = 9 * time.Second

// Tracker judges samples, one after the other. A fold has what is of one sample alone.
type Tracker struct {
	cfg     Config         // Probes is CountProbes once too many probes have come
	sockets *ledger.Sample // the current sample
	now     moment         // of it
	latest  Sample         // the judgment of the sample before

	// What was counted since the trigger, by addConn, and by addUnseen what no sample shows.
	shown     int     // connections that came, by samples and events
	accepted  int     // shown, or counted by the kernel
	perSecond Seconds // accepted
	newest    moment  // the latest connection that counts, health probes aside
	crowded   moment  // the latest that came less than QuietFor after another, or was missed
	missed    bool    // connections may be missing
	bare      int     // closed connections on which no byte was received
	streamed  moment  // the latest sample with a response that streams

	// Connections that have closed, by forget, or were never shown, by addUnseen.
	closed activity            // without the next
	probes map[Pattern]*series // those that may be health probes, by key

	// The connections with the latest activity that counts, by noteActivity; nil: none.
	lastActive *ledger.Conn // possible health probes aside
	lastProbe  *ledger.Conn // a possible health probe

	// The program, by addConn; its queues also by noteQueue and addUnseen, its progress by Judge and finish.
	acceptedOn map[uint16]bool // the ports of which it has accepted a connection
	queued     netip.Addr      // the peer of a connection that waited to be accepted
	queuedAt   moment          // when connections last waited to be accepted, or may have
	progressAt moment          // when it last made progress, or had no need to

	// Of most of the clients that came to a full accept queue no socket is left.
	turnedAwayFrom moment // when the first came of those who may come back
	comeBackUntil  moment // until when they try again: each doubles the time between two tries
}

// silence returns the time since m, or since the trigger if that is later.
func (t *Tracker) silence(m moment) time.Duration { return t.now - max(m, trigger) }

func (t *Tracker) silentSince(at moment) bool { return t.silence(at) >= t.cfg.QuietFor }

// recent reports whether something since the trigger happened less than QuietFor ago.
func (t *Tracker) recent(at moment) bool { return at > trigger && !t.silentSince(at) }

// secondTry is how long after its first try a client tries again at the latest: TCP_TIMEOUT_FALLBACK in
// include/net/tcp.h.
const secondTry = 3 * time.Second

// New returns a Tracker.
func New(cfg Config) *Tracker {
	return &Tracker{cfg: cfg, probes: map[Pattern]*series{}, acceptedOn: map[uint16]bool{}}
}

// patterns returns the patterns, the most frequent first, and how many connections of them are left out.
func (t *Tracker) patterns() (list []Pattern, leftOut int) {
	for key, found := range t.probes {
		if period := found.period(); period > 0 {
			p := key
			p.Period, p.Count, p.LeftOut = period, found.count, t.leavesOut(found)
			p.Last = t.sockets.Time(found.rhythms[0].last.at)
			if p.LeftOut {
				leftOut += p.Count
			}
			// Sorting would make the program 15 kB larger.
			at, _ := slices.BinarySearchFunc(list, p, func(a, b Pattern) int {
				return cmp.Or(cmp.Compare(a.Period, b.Period), a.Peer.Compare(b.Peer),
					cmp.Compare(a.Received, b.Received), cmp.Compare(a.Port, b.Port))
			})
			list = slices.Insert(list, at, p)
		}
	}
	return list, leftOut
}

// seriesOf returns the series of a connection, nil without a series: one that is not new has none. The
// bytes received may be a byte too few, see [tcp.Socket.DiscountFIN].
func (t *Tracker) seriesOf(c *ledger.Conn) *series {
	if c == nil || c.Opened == 0 {
		return nil
	}
	key := keyOf(c)
	for _, received := range [...]uint64{key.Received, key.Received + 1, key.Received - 1} {
		key.Received = received
		if found := t.probes[key]; found != nil {
			return found
		}
	}
	return nil
}

func (t *Tracker) leavesOut(found *series) bool {
	_, period := found.counted(t.cfg.Probes, t.cfg.QuietFor)
	return period > 0
}

// addToSeries adds a closed connection to the series of its key.
func (t *Tracker) addToSeries(c *ledger.Conn, came moment) {
	found := t.seriesOf(c)
	if found == nil {
		if len(t.probes) >= maxProbeKeys {
			for key, other := range t.probes {
				if other.period() == 0 { // without a rhythm, a series is traffic
					t.closed.add(other.all)
					delete(t.probes, key)
				}
			}
		}
		found = &series{}
		t.probes[keyOf(c)] = found
	}
	found.add(activityOf(c, c.Moved), came)
	found.steady = found.steady || t.leavesOut(found)
}
