package observe

import (
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Connections of which both ends are on this machine: a neighbour's in the pod
// count, and the container's to itself, or lameduck's own, do not.

// local reports whether both ends of a connection are here, so that it may come
// from ourselves.
func local(s *tcp.Socket) bool {
	return s.State != tcp.Listen && (s.Remote.Addr().IsLoopback() || s.Remote.Addr() == s.Local.Addr())
}

// seeOthers finds out about self, and shows the judge those whose other end is
// somebody else's.
func (o *observer) seeOthers(j *traffic.Tracker) {
	if len(o.self) == 0 {
		return
	}
	type ends struct{ local, remote netip.AddrPort }
	far := map[ends]tcp.Socket{}
	note := func(s *tcp.Socket) { far[ends{s.Local, s.Remote}] = *s }
	if o.conn != nil {
		var ports []uint16
		for i := range o.self {
			ports = append(ports, o.self[i].Remote.Port())
		}
		o.conn.Dump(sockdiag.Query{States: sockdiag.AllStates, Ports: ports}, note)
	} else {
		for i := range o.table {
			note(&o.table[i])
		}
	}
	o.scope.Learn(scope.Hold("/proc", o.wholePIDNamespace).Inodes)
	for i := range o.self {
		near := &o.self[i]
		other, found := far[ends{near.Remote, near.Local}]
		mine := found && o.scope.Self(near, &other) || o.isCheck(near)
		if mine {
			o.mines++
		} else {
			j.Observe(near)
		}
		if (found || mine) && near.Cookie != 0 {
			o.mine[near.Cookie] = mine
		}
	}
	if len(o.mine) > 2*(o.count+manySockets) {
		clear(o.mine)
	}
}

// parted is a connection that is gone, and since when.
type parted struct {
	tcp.Socket
	at time.Time
}

// hearOthers tells the judge of the ends of those that did not come from ourselves.
func (o *observer) hearOthers(j *traffic.Tracker) {
	for i := range o.ended {
		switch s := &o.ended[i].Socket; {
		case o.mine[s.Cookie]: // seen before
		case o.isCheck(s):
			o.mines++
		default:
			j.Closed(o.ended[i].at, s)
		}
	}
	o.ended = o.ended[:0]
}

// askHealth finds out which connections are the health listener's, after they were
// seen: then none is missing. Those that are new may not have been accepted yet; in
// the queue of one that accepts nothing any more they are seen as any other.
func (o *observer) askHealth(now time.Time, j *traffic.Tracker) {
	if o.health == nil {
		return
	}
	since := o.looked.Add(-late)
	if o.looked.IsZero() {
		since = now.Add(-time.Minute)
	}
	before := slices.Clone(o.passed)
	o.passed, o.looked = o.health.Proxied(o.passed[:0], since), now
	for i := range o.queues {
		listener := &o.queues[i]
		for _, p := range o.passed {
			if p.Target.Port() == listener.Local.Port() && !slices.Contains(before, p) {
				listener.Unread -= min(listener.Unread, 1)
			}
		}
		j.Observe(listener)
	}
}

// checkActivity is what the health listener did up to the last look.
type checkActivity struct {
	opens uint64 // see health.Listener
	moved bool   // a check came, or a connection was open
}

// checksMoved reports whether health checks may have caused segments since the last look,
// including the segments with which the kernel closes a connection.
func (o *observer) checksMoved(now time.Time) bool {
	if o.health == nil {
		return false
	}
	last := o.checks
	opens := o.health.Opens()
	o.checks = checkActivity{opens, opens != last.opens || len(o.health.Proxied(nil, now)) > 0}
	return o.checks.moved || last.moved
}

// late is how long after the end of a connection the kernel may tell of it: it does so
// when it has nothing better to do.
const late = 5 * time.Second

// isCheck reports whether a connection to the command is the health listener's.
func (o *observer) isCheck(s *tcp.Socket) bool {
	return slices.Contains(o.passed, health.ProxiedConn{Local: s.Remote, Target: s.Local})
}
