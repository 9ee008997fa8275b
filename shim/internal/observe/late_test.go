package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// TestLatePorts: a port opened after the trigger counts from the next listing on, for the
// dump and for events. A port that is closed stays; a neighbor's port does not count, and its
// connections are in the kernel's counters. With ports given, nothing is listed.
func TestLatePorts(t *testing.T) {
	netns.Need(t)
	s, f, e := fakeSampler(listenerOn(80, 50))
	o := s.observer
	o.late.query.Cgroup = 50
	o.markSeen(f.sockets)
	for _, cells := range tables.Rows(`
		# new listener, its control group | late ports | comparable with the counters
		            |       | yes
		81 50       | 81    | yes
		            | 81    | yes
		79 50 fails | 79 81 | yes
		91 60       | 79 81 | no
		            | 79 81 | no
	`) {
		f.sockets = nil
		var port uint16
		var cgroup uint64
		if n, _ := fmt.Sscan(cells[0], &port, &cgroup); n > 0 {
			f.sockets = append(f.sockets, listenerOn(port, cgroup))
		}
		if strings.HasSuffix(cells[0], "fails") {
			f.errs = []error{unix.ENOBUFS}
		}
		o.findLate()
		late := o.late.ports
		want := (scope.Ports{80}).Union(late)
		if fmt.Sprint(late) != "["+cells[1]+"]" || !slices.Equal(o.scope.Ports, want) ||
			len(late) > 0 && !slices.Equal(e.ports, want) {
			t.Errorf("%q: late %v, ports %v, of events %v", cells, late, o.scope.Ports, e.ports)
		}
		if o.opens.comparable != (cells[2] == "yes") {
			t.Errorf("%q: comparable is %v", cells, o.opens.comparable)
		}
	}
	o.late.query.Given = []uint16{80}
	f.dumps = 0
	if o.findLate(); f.dumps > 0 {
		t.Error("ports given: the listeners were listed")
	}
}
