package observe

import (
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// listenerOn returns a listener whose inode is the port's number.
func listenerOn(port uint16, cgroup uint64) tcp.Socket {
	return tcp.Socket{State: tcp.Listen, Local: netip.AddrPortFrom(netip.IPv4Unspecified(), port), Inode: uint32(port), Cgroup: cgroup}
}

// lateWorld is an observer of the listeners of a fake source, after the trigger. Sockets of
// control group 50 are ours.
func lateWorld(given ...uint16) (*observer, *fakeDumper, *fakeEvents) {
	f := &fakeDumper{sockets: []tcp.Socket{listenerOn(80, 50), listenerOn(90, 60)}}
	e := &fakeEvents{}
	o := &observer{source: source{conn: f}, events: events{reader: e}, opens: opens{comparable: true}}
	o.late = late{query: scope.Query{Given: given, Listeners: f.sockets, Cgroup: 50}, seen: map[uint32]bool{}}
	o.scope = scope.Decide(scope.Gather(o.late.query))
	o.markSeen(f.sockets)
	o.opens.comparable = true
	return o, f, e
}

// TestLatePorts: a port opened after the trigger counts from the next listing on, for the
// dump and for events. A port that is closed stays; a neighbor's port does not count.
func TestLatePorts(t *testing.T) {
	netns.Need(t)
	o, f, e := lateWorld()
	for i, c := range []struct {
		sockets    []tcp.Socket // new listeners
		err        error
		late       scope.Ports
		comparable bool
	}{
		{nil, nil, nil, true},
		{[]tcp.Socket{listenerOn(81, 50)}, nil, scope.Ports{81}, true},
		{nil, nil, scope.Ports{81}, true},
		{[]tcp.Socket{listenerOn(79, 50)}, unix.ENOBUFS, scope.Ports{79, 81}, true},
		{[]tcp.Socket{listenerOn(91, 60)}, nil, scope.Ports{79, 81}, false},
		{nil, nil, scope.Ports{79, 81}, false},
	} {
		f.sockets = append(f.sockets, c.sockets...)
		f.err = c.err
		o.findLate()
		if !slices.Equal(o.late.ports, c.late) || o.opens.comparable != c.comparable {
			t.Errorf("step %d: late %v, comparable %v", i, o.late.ports, o.opens.comparable)
		}
		if want := (scope.Ports{80}).Union(c.late); !slices.Equal(o.scope.Ports, want) || len(c.late) > 0 && !slices.Equal(e.ports, want) {
			t.Errorf("step %d: ports %v, of events %v, want %v", i, o.scope.Ports, e.ports, want)
		}
	}
}

// TestLatePortsGiven: with ports given, nothing is listed.
func TestLatePortsGiven(t *testing.T) {
	netns.Need(t)
	o, f, _ := lateWorld(80)
	f.sockets = append(f.sockets, listenerOn(81, 50))
	o.findLate()
	if f.dumps > 0 || !slices.Equal(o.scope.Ports, scope.Ports{80}) {
		t.Errorf("%d dumps, ports %v", f.dumps, o.scope.Ports)
	}
}
