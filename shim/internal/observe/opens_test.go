package observe

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

var (
	errDenied = errors.New("denied")
	trigger   = time.Unix(1000, 0)
	atTrigger = procfs.Counters{ActiveOpens: 3, PassiveOpens: 100, InSegs: 5000}
)

// TestOpens: what the kernel's counters tell of connections that no sample shows. With destroy
// events a surplus over connections to ourselves will be reported; without, the connections are
// counted if the counter counts no others, and else missed, as in a flood. The health listener
// counts a connection up to three samples later than the kernel; until then a surplus is no
// activity.
func TestOpens(t *testing.T) {
	for _, cells := range script.Rows(`
		# name | the hold | samples: connections accepted | what each finds
		counted             | alone        | 7                     | accepted=7
		others listen       |              | 7                     | missed
		connects itself     | alone active | 7                     | missed
		cannot read         | alone        | 7:error               | missed
		nothing came        | alone        | 0                     | -
		only others connect | active       | 7                     | missed
		a flood             | alone flood  | 7                     | missed
		no counters before  | blind        | 7                     | missed
		health checks       | health       | 0 1 1 0 1 1 1 1 1     | - - - - - - - missed -
		events              | alone events | 2 2 5                 | opened=2 - opened=3
		to ourselves        | alone events | 2:self=1 4:self=3 5:self=3 | opened=1 - opened=1
		events, cannot read | alone events | 9:error 3             | - opened=3
		self, unread        | alone events | 1:self=1:error 1:self=1 | - -
		others, events      | events       | 2                     | -
	`) {
		is := func(word string) bool { return slices.Contains(strings.Fields(cells[1]), word) }
		p := opens{comparable: is("alone")}
		var atStart error
		if is("blind") {
			p.comparable, atStart = true, errDenied
		}
		p.begin(atTrigger, atStart, is("health"))
		var e events
		if is("events") {
			e.reader = &fakeEvents{}
		}
		if is("flood") {
			e.floodedAt = trigger
		}
		var got []string
		for sample := range strings.FieldsSeq(cells[2]) {
			var more, self int
			fmt.Sscanf(sample, "%d:self=%d", &more, &self)
			var err error
			if strings.HasSuffix(sample, ":error") {
				err = errDenied
			}
			counters := atTrigger
			counters.PassiveOpens += uint64(more)
			if is("active") {
				counters.ActiveOpens++
			}
			var rest traffic.Rest
			p.check(trigger, counters, err, &e, self, &rest)
			got = append(got, describe(rest))
		}
		if text := strings.Join(got, " "); text != cells[3] {
			t.Errorf("%s: %s, want %s", cells[0], text, cells[3])
		}
	}
}

func describe(rest traffic.Rest) string {
	switch {
	case rest.Accepted > 0:
		return fmt.Sprintf("accepted=%d", rest.Accepted)
	case rest.Opened > 0:
		return fmt.Sprintf("opened=%d", rest.Opened)
	case !rest.MissedAt.IsZero():
		return "missed"
	}
	return "-"
}

// TestSegmentsArrived: a change of InSegs counts once.
func TestSegmentsArrived(t *testing.T) {
	var p opens
	p.begin(atTrigger, nil, false)
	for i, step := range strings.Fields("5000 5001! 5001 error 5001 5009!") {
		var segments uint64
		var err error
		if n, _ := fmt.Sscan(step, &segments); n == 0 {
			err = errDenied
		}
		var rest traffic.Rest
		p.check(trigger, procfs.Counters{InSegs: segments}, err, &events{}, 0, &rest)
		if rest.Segments != strings.HasSuffix(step, "!") {
			t.Errorf("sample %d: %v", i, rest.Segments)
		}
	}
}
