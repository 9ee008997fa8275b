package observe

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
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
	for i, cells := range script.Rows(`
		# a new listener | late ports | comparable with the counters
		            |       | yes
		81 50       | 81    | yes
		            | 81    | yes
		79 50 fails | 79 81 | yes
		91 60       | 79 81 |
		            | 79 81 |
	`) {
		var port uint16
		var cgroup uint64
		if n, _ := fmt.Sscan(cells[0], &port, &cgroup); n > 0 {
			f.sockets = append(f.sockets, listenerOn(port, cgroup))
		}
		f.err = nil
		if strings.HasSuffix(cells[0], "fails") {
			f.err = unix.ENOBUFS
		}
		o.findLate()
		if fmt.Sprint(o.late.ports) != "["+cells[1]+"]" || o.opens.comparable != (cells[2] == "yes") {
			t.Errorf("step %d: late %v, comparable %v", i, o.late.ports, o.opens.comparable)
		}
		late := o.late.ports
		if want := (scope.Ports{80}).Union(late); !slices.Equal(o.scope.Ports, want) || len(late) > 0 && !slices.Equal(e.ports, want) {
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
