package observe

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// The states of listeners, and of connections that a program has open.
var (
	listenStates = sockdiag.In(tcp.Listen)
	openStates   = sockdiag.In(tcp.Established, tcp.CloseWait)
)

// Observer takes samples of the sockets that count, by a ledger.
type Observer struct {
	scope    scope.Scope
	source   source
	events   events
	opens    opens
	own      own
	ledger   *ledger.Ledger
	deferred []tcp.Socket // of the current sample: sockets to decide on after the dump
	sockets  int          // in the latest sample
	wasTable bool         // the source of the latest sample was a table

	facts     scope.Facts     // that were known at the trigger
	seen      map[uint32]bool // inodes of listeners
	latePorts tcp.Ports       // that the server has opened since

	datagrams uint64 // that the network namespace has received, for a scope of UDP alone
	uncounted error  // why they are not known
}

// Open chooses the best source and finds the ports that count. A port is never
// removed later: a server may close all listeners first. Reading of events begins before
// the first sample, so that no connection is missed in between.
func Open(cfg *Config) *Observer {
	t := &cfg.Traffic
	o := &Observer{
		opens:  opens{comparable: t.Probes != traffic.IgnoreProbes && len(t.IgnorePorts)+len(t.IgnorePeers) == 0},
		own:    own{all: cfg.Own},
		ledger: ledger.New(t.Ledger(cfg.Start)),
		seen:   map[uint32]bool{},
	}
	o.source.dump = new(sockdiag.Lister).Dump
	listeners, err := o.source.list(listenStates)
	o.facts = scope.Facts{
		Given: cfg.Ports, Listeners: listeners, Err: err, Listener: cfg.Own.Listener,
		Namespace: cfg.EveryPort, WholePIDNamespace: cfg.WholePIDNamespace,
	}
	if !cfg.EveryPort {
		o.facts.Cgroup = o.source.ownCgroup()
	}
	o.scope = scope.Find(o.facts, func() ([]tcp.Socket, error) { return o.source.list(openStates) })
	if len(o.scope.Unserved) > 0 {
		o.facts.Given = nil
	}
	o.markSeen(listeners)
	if len(o.scope.Ports) == 0 && !o.scope.Complete {
		o.source.failed = o.scope.Why
	}
	o.wasTable = o.source.isTable()
	o.readEvents()
	o.datagrams, o.uncounted = proc.Datagrams()
	initial, err := o.counters()
	o.opens.comparable = o.opens.comparable && err == nil
	o.opens.initial, o.opens.latest = initial, initial
	if err != nil && o.Name() == report.SockDiag && o.events.reader == nil {
		o.source.limits = "connections shorter than a sample are not reported: " + err.Error()
	}
	return o
}

// Name returns the value of Snapshot.Observer.
func (o *Observer) Name() string {
	switch {
	case o.source.failed != nil:
		return report.NoSource
	case o.countsDatagrams():
		return report.Datagrams
	case o.source.isTable():
		return report.ProcNet
	case len(o.scope.Ports) == 0:
		return ""
	}
	return report.SockDiag
}

// countsDatagrams reports whether the container certainly serves over UDP and not over TCP, and
// datagrams tell when clients came.
func (o *Observer) countsDatagrams() bool {
	s := &o.scope
	return s.Complete && len(s.Ports) == 0 && len(s.UDP) > 0 && o.uncounted == nil
}

// readEvents makes events those of scope.Ports, or none beside the tables of /proc/net.
func (o *Observer) readEvents() {
	switch {
	case o.source.isTable():
		o.events.leave()
	case len(o.scope.Ports) > 0:
		o.events.setPorts(o.ports())
	}
}

// Sample takes a sample, in which sockets in TIME_WAIT are only if they are wanted. A sample after a failed dump is
// incomplete; if the source has changed by that, the next one is taken from the next source. Without a port
// nothing is listed, and datagrams are activity.
func (o *Observer) Sample(now time.Time, timeWait bool) *ledger.Sample {
	if len(o.scope.Ports) == 0 {
		rest := ledger.Rest{Incomplete: !o.scope.Complete}
		if n, err := proc.Datagrams(); o.countsDatagrams() && (n != o.datagrams || err != nil) {
			o.datagrams, rest.MissedAt = n, now
		}
		o.ledger.Begin(now)
		return o.ledger.End(rest)
	}
	o.source.retry(now)
	if isTable := o.source.isTable(); isTable != o.wasTable {
		o.wasTable = isTable
		o.ledger.ChangeSource()
		o.readEvents()
	}
	sample, err := o.sample(now, timeWait)
	o.source.failed = nil
	if o.wasTable {
		o.source.failed = err
	}
	return sample
}

// sample takes a sample from the present source: open connections, then
// connections closed since the previous sample, then the surplus of the counters.
func (o *Observer) sample(now time.Time, timeWait bool) (*ledger.Sample, error) {
	began := time.Now()
	if note := o.ledger.PingPong(now); note != nil {
		_ = proc.TCP(func(s *tcp.Socket) { note(s.Local, s.Remote, s.Info.PingPong) })
	}
	o.ledger.Begin(now)
	o.sockets = 0
	o.deferred = o.deferred[:0]
	counters, countersErr := o.counters() // before the dump: counted connections are in the dump or the events
	states := sockdiag.AllStates
	if !timeWait {
		states &^= sockdiag.In(tcp.TimeWait)
	}
	err := o.source.each(states, o.ports(), o.visit)
	readAt := now.Add(time.Since(began)) // later than what has ended the sockets of the events
	o.events.read(readAt)
	checked := o.own.update(now)
	o.opens.comparable = o.opens.comparable && o.own.opens == 0
	if err == nil {
		err = o.observeDeferred()
	}
	rest := ledger.Rest{
		Incomplete: err != nil, ReadAt: readAt, Resets: counters.OutRsts, Uncounted: countersErr,
	}
	for i := range o.events.closed {
		e := &o.events.closed[i]
		o.ledger.Closed(&e.socket, e.at, o.decide(&e.socket, nil))
	}
	rest.MissedAt = o.events.endSample()
	o.opens.check(now, counters, countersErr, &o.events, &rest)
	rest.Segments = rest.Segments && !checked // segments of health checks cannot be told apart
	return o.ledger.End(rest), err
}

// ports returns the ports whose sockets are read.
func (o *Observer) ports() tcp.Ports {
	if o.facts.Namespace {
		return nil
	}
	return o.scope.Ports
}

// side returns whose business a socket is, and whether that is known before the sockets at the other
// ends are.
func (o *Observer) side(s *tcp.Socket) (side ledger.Side, isKnown bool) {
	switch {
	case !o.scope.Ports.Has(s.Local.Port()):
		return ledger.Ignored, true
	case !mayBeSelf(s):
		return ledger.Clients, true
	}
	isSelf, isDecided := o.ledger.Decided(s)
	if isSelf {
		return ledger.Own, true
	}
	return ledger.Clients, isDecided
}

// visit adds a socket to the sample, or defers it: a connection whose side is not known yet, or a queue that
// may hold connections of lameduck's own.
func (o *Observer) visit(s *tcp.Socket) {
	o.sockets++
	side, isKnown := o.side(s)
	if !isKnown || s.State == tcp.Listen && s.Unread > 0 {
		o.deferred = append(o.deferred, *s)
		return
	}
	o.ledger.Observe(s, side)
}

// observeDeferred adds the deferred sockets. After an error the sample is incomplete, and the
// next one decides.
func (o *Observer) observeDeferred() error {
	otherEnds, err := o.otherEnds()
	for i := range o.deferred {
		s := &o.deferred[i]
		if s.State == tcp.Listen {
			o.own.discount(s)
		} else if err != nil {
			continue
		}
		o.ledger.Observe(s, o.decide(s, otherEnds))
	}
	return err
}

// counters reads the counters of TCP in the network namespace, without connections of lameduck's
// own.
func (o *Observer) counters() (procfs.Counters, error) {
	counters, err := proc.Counters()
	counters.PassiveOpens -= o.own.all.Opens()
	return counters, err
}
