package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// TestOpens: what the kernel's counters tell of connections that no sample shows. With destroy
// events a surplus over connections to ourselves will be reported; without, the connections are
// counted if the counter counts no others, and else missed. A segment is noted once.
func TestOpens(t *testing.T) {
	for _, cells := range tables.Rows(`
		# name | the hold | samples: connections accepted | what each finds
		counted             | alone        | 7                     | Accepted=7
		others listen       |              | 7                     | missed
		connects itself     | alone active | 7                     | missed
		cannot read         | alone        | 7:error               | missed
		nothing came        | alone        | 0                     | -
		events              | alone events | 2 2 5                 | Opened=2 - Opened=3
		to ourselves        | alone events | 2:self=1 4:self=3 5:self=3 | Opened=1 - Opened=1
		events, cannot read | alone events | 9:error 3             | - Opened=3
		self, unread        | alone events | 1:self=1:error 1:self=1 | - -
		others, events      | events       | 2                     | -
		segments            | alone        | 0:in=1 0:in=1 0:in=2  | Segments=true - Segments=true
		turned away         | alone        | 0:over=1 0:over=1     | TurnedAway=true -
	`) {
		is := func(word string) bool { return slices.Contains(strings.Fields(cells[1]), word) }
		atTrigger := procfs.Counters{ActiveOpens: 3, PassiveOpens: 100}
		p := opens{comparable: is("alone"), initial: atTrigger, latest: atTrigger}
		var e events
		if is("events") {
			e.reader = &fakeEvents{}
		}
		var found []string
		before := 0
		for sample := range strings.FieldsSeq(cells[2]) {
			counters := atTrigger
			var opened uint64
			var toSelf int
			fmt.Sscanf(sample, "%d:self=%d", &opened, &toSelf)
			fmt.Sscanf(sample, "%d:in=%d", &opened, &counters.InSegs)
			fmt.Sscanf(sample, "%d:over=%d", &opened, &counters.ListenOverflows)
			counters.PassiveOpens += opened
			if is("active") {
				counters.ActiveOpens++
			}
			var err error
			if strings.HasSuffix(sample, ":error") {
				err = errDenied
			}
			var rest ledger.Rest
			p.toSelf += max(toSelf-before, 0)
			before = max(toSelf, before)
			p.check(trigger, counters, err, &e, &rest)
			text := strings.Join(tables.Differing(ledger.Rest{}, rest), "+")
			found = append(found, cmp.Or(strings.ReplaceAll(text, fmt.Sprint("MissedAt=", trigger), "missed"), "-"))
		}
		if got := strings.Join(found, " "); got != cells[3] {
			t.Errorf("%s: %s, want %s", cells[0], got, cells[3])
		}
	}
}

// TestLatePorts: a port opened after the trigger counts from the next listing on, for the
// dump and for events. A port that is closed stays; a neighbor's port does not count, and its
// connections are in the kernel's counters. A reader
// whose filter cannot get the port is closed. With ports given, nothing is listed.
func TestLatePorts(t *testing.T) {
	netns.Need(t)
	s, f, e := fakeSampler(listenerOn(80, 50))
	o := s.observer
	o.facts.Cgroup = 50
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
		o.FindLate()
		late := o.latePorts
		want := (tcp.Ports{80}).Union(late)
		if fmt.Sprint(late) != "["+cells[1]+"]" || !slices.Equal(o.scope.Ports, want) ||
			len(late) > 0 && !slices.Equal(e.ports, want) {
			t.Errorf("%q: late %v, ports %v, of events %v", cells, late, o.scope.Ports, e.ports)
		}
		if o.opens.comparable != (cells[2] == "yes") {
			t.Errorf("%q: comparable is %v", cells, o.opens.comparable)
		}
	}
	e.err, f.sockets = errDenied, []tcp.Socket{listenerOn(95, 50)}
	if o.FindLate(); o.events.reader != nil || !e.closed {
		t.Error("events of a port that the filter leaves out are read")
	}
	o.facts.Given = []uint16{80}
	f.dumps = 0
	if o.FindLate(); f.dumps > 0 {
		t.Error("ports given: the listeners were listed")
	}
}
