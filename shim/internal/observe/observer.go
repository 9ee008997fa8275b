package observe

import (
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// manySockets is the number of sockets above which samples are less frequent.
const manySockets = 10_000

// observer gives a tracker samples of the connections that count.
type observer struct {
	wholePIDNamespace bool
	scope             scope.Scope
	late              late
	source            source
	events            events
	opens             opens
	self              self
	proxied           proxied
	pingpong          pingpongCache
	sockets           int // in the latest sample
}

// newObserver chooses the best source and finds the ports that count. A port is never
// removed later: a server may close all listeners first. Reading of events begins before
// the first sample, lest a connection be missed in between.
func newObserver(cfg *Config) *observer {
	o := &observer{
		wholePIDNamespace: cfg.WholePIDNamespace,
		self:              self{isSelf: map[uint64]bool{}},
		proxied:           newProxied(cfg.Health),
		pingpong:          pingpongCache{readTable: procfs.Root("").PingPong, entries: map[uint64]pingpongEntry{}},
	}
	listeners, err := o.source.open()
	o.findScope(cfg.Ports, listeners, err)
	o.late.begin(time.Now(), listeners, cfg.Traffic.QuietFor)
	o.observePorts()
	if len(o.scope.Ports) == 0 && !o.scope.Complete {
		o.source.setUnobservable(o.scope.Why)
	}
	foreign := func(s tcp.Socket) bool { return s.State == tcp.Listen && !o.scope.Ports.Has(s.Local.Port()) }
	o.opens = opens{
		soleListener: !slices.ContainsFunc(listeners, foreign), filtered: cfg.filtered(), acceptsLate: o.proxied.enabled(),
	}
	initial, err := o.counters()
	o.opens.begin(initial, err)
	if err != nil && o.source.name == SockDiag && !o.events.reporting() {
		o.source.trouble = "connections shorter than a sample are not reported: " + err.Error()
	}
	return o
}

// findScope finds out on which ports the container listens; err is why listeners may be
// incomplete.
func (o *observer) findScope(given []uint16, listeners []tcp.Socket, err error) {
	q := scope.Query{
		Given: given, Listeners: listeners, Err: err,
		Cgroup: ownCgroup(o.source.conn), WholePIDNamespace: o.wholePIDNamespace,
	}
	if o.proxied.enabled() {
		q.Shim = append(q.Shim, o.proxied.listener.Inode())
	}
	q.Connections = o.source.connections
	o.scope = scope.Find(q)
	o.late.query = q
}

// observePorts makes events and the next sample those of scope.Ports.
func (o *observer) observePorts() {
	if len(o.scope.Ports) > 0 && o.source.conn != nil {
		o.source.name = SockDiag
		o.events.setPorts(o.scope.Ports)
	}
}

func (o *observer) close() {
	o.source.close()
	o.events.close()
}

// sample gives the tracker a sample. A sample after a failed dump is incomplete; if the
// source is exhausted, the sample is taken again from the next source. An error means: no
// source is left.
func (o *observer) sample(now time.Time, t *traffic.Tracker) error {
	err := o.sampleSource(now, t)
	if err != nil && o.source.exhausted(err) {
		o.source.fallBack(err)
		o.events.close()
		err = o.sampleSource(now, t)
	}
	if err != nil && o.source.conn == nil {
		o.source.setUnobservable(err)
		return err
	}
	o.source.setObservable()
	return nil
}

// sampleSource gives the tracker a sample from the present source: open connections, then
// connections closed since the previous sample, then the surplus of the counters.
func (o *observer) sampleSource(now time.Time, t *traffic.Tracker) error {
	t.Begin(now)
	o.events.beginSample(now)
	o.self.beginSample()
	o.proxied.beginSample()
	o.pingpong.beginSample(now)
	o.sockets = 0
	counters, countersErr := o.counters() // before the dump: counted connections are in the dump or the events
	err := o.source.dump(o.scope.Ports, func(s *tcp.Socket) { o.visit(s, t) })
	o.events.read(now)
	o.proxied.update(now, t.Observe)
	if err == nil {
		err = o.decideSelf(t)
	}
	rest := traffic.Rest{Incomplete: err != nil, NewSource: err != nil && o.source.exhausted(err)}
	o.events.endSample(&rest, func(s *tcp.Socket) bool {
		return o.self.excludesClosed(s, func(s *tcp.Socket) bool { return o.proxied.has(s) || o.isShort(s) })
	})
	o.check(now, counters, countersErr, &rest)
	t.End(rest)
	return err
}

// visit gives the tracker a socket, unless self or proxied has to decide first.
func (o *observer) visit(s *tcp.Socket, t *traffic.Tracker) {
	o.sockets++
	o.pingpong.apply(s)
	if !o.proxied.defers(s) && !o.self.excludes(s) {
		t.Observe(s)
	}
}

// decideSelf gives the tracker all candidates but connections to ourselves, whose other
// end is a socket of the container or of the health listener. After an error the
// candidates stay for the next sample.
func (o *observer) decideSelf(t *traffic.Tracker) error {
	if len(o.self.selfCandidates) == 0 {
		return nil
	}
	otherEnds, err := o.source.otherEnds(o.self.selfCandidates)
	if err != nil {
		return err
	}
	o.scope.Learn(scope.HeldSockets("", o.wholePIDNamespace).Inodes)
	o.self.decide(func(near *tcp.Socket) (isSelf, final bool) {
		other, found := otherEnds[ends{near.Remote, near.Local}]
		isSelf = found && o.scope.Self(near, &other) || o.proxied.has(near)
		if !isSelf && other.Inode == 0 {
			isSelf = o.isShort(near)
		}
		return isSelf, isSelf || found
	}, t.Observe)
	o.self.limit(o.sockets)
	return nil
}

// check adds to rest the surplus of the counters over the sample and the events.
func (o *observer) check(now time.Time, counters procfs.Counters, err error, rest *traffic.Rest) {
	checksMoved := o.proxied.moved(now) // segments of health checks cannot be told apart
	segments := o.opens.checkSegments(counters, err)
	rest.Segments = segments && !checksMoved
	if o.events.reporting() {
		o.opens.checkPassiveOpens(counters, err, o.self.selfAccepted, rest)
		return
	}
	o.opens.countUnreported(now, counters, err, o.events.flooded(), rest)
}

// counters reads the counters of TCP in the network namespace, without connections of
// the health listener.
func (o *observer) counters() (procfs.Counters, error) {
	counters, err := procfs.Root("").Counters()
	counters.PassiveOpens -= o.proxied.passiveOpens()
	return counters, err
}
