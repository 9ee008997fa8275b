package observe

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// TestEventsMissed: lost events and errors are noted, and make a burst of few.
func TestEventsMissed(t *testing.T) {
	for name, c := range map[string]struct {
		reader           fakeEvents
		missed, bursting bool
	}{
		"few":   {fakeEvents{ended: burstThreshold}, false, false},
		"many":  {fakeEvents{ended: burstThreshold + 1}, false, true},
		"lost":  {fakeEvents{lost: 1}, true, true},
		"error": {fakeEvents{err: errDenied}, true, true},
	} {
		e := events{reader: &c.reader}
		e.read(trigger)
		bursting := e.bursting()
		if missed := e.endSample().Equal(trigger); missed != c.missed || bursting != c.bursting || e.bursting() {
			t.Errorf("%s: missed %v, bursting %v, then %v", name, missed, bursting, e.bursting())
		}
	}
}

// TestEventsPaused: in a flood the groups are left for a second, during which activity is
// certain, and further ports are for later.
func TestEventsPaused(t *testing.T) {
	netns.Need(t)
	f := &fakeEvents{ended: 6000}
	e := events{reader: f, countedFrom: trigger}
	e.read(trigger)
	e.setPorts(scope.Ports{80})
	if e.reader != nil || !f.closed {
		t.Fatal("6000 events at once are not a flood")
	}
	for _, step := range tables.Read[struct {
		After time.Duration
		Found string
	}](`
		# after the flood | missed, reporting
		0s    | true false
		999ms | true false
		1s    | true true
		2s    | false true
	`) {
		at := trigger.Add(step.After)
		if e.beginSample(at) {
			e.setPorts(scope.Ports{80})
		}
		if got := fmt.Sprint(e.endSample().Equal(at), e.reader != nil); got != step.Found {
			t.Errorf("after %v: %s, want %s", step.After, got, step.Found)
		}
	}
	e.pause()
}

// TestEventsWait: wait reads events as they arrive, in a burst from time to time, and returns in
// time.
func TestEventsWait(t *testing.T) {
	for name, arrived := range map[string]uint{"an event": 1, "a burst": 0} {
		fd := testutil.Must(unix.Eventfd(arrived, 0))
		defer unix.Close(fd)
		hasRead := make(chan bool, 1)
		e := events{reader: &fakeEvents{fd: fd, read: func() { hasRead <- true }}}
		if arrived == 0 {
			e.missedAt = trigger
		}
		go e.wait(time.Now().Add(time.Hour))
		select {
		case <-hasRead:
		case <-time.After(testutil.Patience):
			t.Errorf("%s: not read", name)
		}
	}
	until := time.Now().Add(30 * time.Millisecond)
	e := events{missedAt: trigger, reader: &fakeEvents{}}
	if e.wait(until); time.Now().Before(until) {
		t.Error("wait returned early")
	}
}
