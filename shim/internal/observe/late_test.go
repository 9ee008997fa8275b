package observe

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
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
	o := &observer{source: source{conn: f}, events: events{reader: e}, opens: opens{soleListener: true}}
	o.late.query = scope.Query{Given: given, Listeners: f.sockets, Cgroup: 50}
	o.late.begin(trigger, f.sockets, 10*time.Second)
	o.scope = scope.Decide(scope.Gather(o.late.query))
	return o, f, e
}

// TestLatePorts: a port opened after the trigger counts from the next listing on, for the
// dump and for events. A port that is closed stays; a neighbor's port does not count.
func TestLatePorts(t *testing.T) {
	netns.Need(t)
	o, f, e := lateWorld()
	for i, c := range []struct {
		after   time.Duration
		sockets []tcp.Socket // new listeners
		err     error
		late    scope.Ports
		asks    bool // the listeners are listed
		sole    bool
	}{
		{500 * time.Millisecond, []tcp.Socket{listenerOn(81, 50)}, nil, nil, false, true},
		{500 * time.Millisecond, nil, nil, scope.Ports{81}, true, true},
		{time.Second, nil, nil, scope.Ports{81}, true, true},
		{time.Second, []tcp.Socket{listenerOn(79, 50)}, unix.ENOBUFS, scope.Ports{79, 81}, true, true},
		{time.Second, []tcp.Socket{listenerOn(91, 60)}, nil, scope.Ports{79, 81}, true, false},
		{time.Second, nil, nil, scope.Ports{79, 81}, true, false},
	} {
		f.sockets = append(f.sockets, c.sockets...)
		f.err = c.err
		before := f.dumps
		now := o.late.listedAt.Add(c.after)
		if c.after < maxListInterval && i > 0 {
			now = now.Add(500 * time.Millisecond)
		}
		o.findLate(now)
		if !slices.Equal(o.late.ports, c.late) || f.dumps > before != c.asks || o.opens.soleListener != c.sole {
			t.Errorf("step %d: late %v, listed %v, sole listener %v", i, o.late.ports, f.dumps > before, o.opens.soleListener)
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
	o.findLate(trigger.Add(time.Hour))
	if f.dumps > 0 || !slices.Equal(o.scope.Ports, scope.Ports{80}) {
		t.Errorf("%d dumps, ports %v", f.dumps, o.scope.Ports)
	}
}

// TestLateInterval: even a short silence has a listing of the listeners.
func TestLateInterval(t *testing.T) {
	for quietFor, want := range map[time.Duration]time.Duration{time.Minute: time.Second, time.Second: time.Second / 2} {
		var l late
		l.begin(trigger, nil, quietFor)
		if l.due(trigger.Add(want-1)) || !l.due(trigger.Add(want)) {
			t.Errorf("a silence of %v: the interval is %v", quietFor, l.interval)
		}
	}
}

// TestLateListing: a table of /proc/net is used again if a sample has read it since the
// previous listing, and is read otherwise.
func TestLateListing(t *testing.T) {
	s := source{root: procfs.Root(t.TempDir()), table: []tcp.Socket{listenerOn(80, 0), *local(1)}, tableFresh: true}
	visited := 0
	visit := func(*tcp.Socket) { visited++ }
	if err := s.eachListener(visit); err != nil || visited != 1 {
		t.Errorf("%v, %d listeners", err, visited)
	}
	if err := s.eachListener(visit); err == nil || visited != 1 {
		t.Errorf("an old table: %v, %d listeners", err, visited)
	}
}
