package observe

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestEventsMissed: missed events are noted, and make a burst of few.
func TestEventsMissed(t *testing.T) {
	for name, c := range map[string]struct {
		reader           fakeEvents
		missed, bursting bool
	}{
		"few":    {fakeEvents{ended: burstThreshold}, false, false},
		"many":   {fakeEvents{ended: burstThreshold + 1}, false, true},
		"missed": {fakeEvents{missed: true}, true, true},
		"a lot":  {fakeEvents{ended: maxClosed + 1}, true, true},
	} {
		e := events{reader: &c.reader}
		e.read(trigger)
		bursting := e.bursting() && len(e.closed) <= maxClosed
		if missed := e.endSample().Equal(trigger); missed != c.missed || bursting != c.bursting || e.bursting() {
			t.Errorf("%s: missed %v, bursting %v, then %v", name, missed, bursting, e.bursting())
		}
	}
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
