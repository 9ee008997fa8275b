package observe

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

func none(*tcp.Socket) bool { return false }

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
		var rest traffic.Rest
		e.endSample(&rest, none)
		if rest.MissedAt.Equal(trigger) != c.missed || bursting != c.bursting || e.bursting() {
			t.Errorf("%s: missed at %v, bursting %v, then %v", name, rest.MissedAt, bursting, e.bursting())
		}
	}
}

// TestEventsPaused: in a flood the groups are left for a second, during which activity is
// certain. As many events in a longer time are no flood.
func TestEventsPaused(t *testing.T) {
	netns.Need(t)
	f := &fakeEvents{ended: 6000}
	e := events{reader: f, ports: scope.Ports{80}, countedFrom: trigger.Add(-time.Second)}
	e.read(trigger)
	if !e.reporting() {
		t.Error("6000 events in a second are a flood")
	}
	f.ended = 6000
	e.read(trigger)
	if e.reporting() || !f.closed {
		t.Fatal("6000 events at once are not a flood")
	}
	for _, step := range []struct {
		after             time.Duration
		missed, reporting bool
	}{{0, true, false}, {999 * time.Millisecond, true, false}, {time.Second, true, true}, {2 * time.Second, false, true}} {
		at := trigger.Add(step.after)
		e.beginSample(at)
		var rest traffic.Rest
		e.endSample(&rest, none)
		if rest.MissedAt.Equal(at) != step.missed || e.reporting() != step.reporting {
			t.Errorf("after %v: missed at %v, reporting %v", step.after, rest.MissedAt, e.reporting())
		}
	}
	e.close()
}

// TestEventsSetPorts: the reader gets further ports, and a reader without a filter for the
// ports is closed. In a flood the ports are for later.
func TestEventsSetPorts(t *testing.T) {
	more := scope.Ports{80, 81}
	f := &fakeEvents{}
	e := events{reader: f, ports: scope.Ports{80}}
	e.setPorts(more)
	if !slices.Equal(f.ports, more) || !slices.Equal(e.ports, more) || !e.reporting() {
		t.Errorf("%v, %v", f.ports, e.ports)
	}
	f.err = errDenied
	e.setPorts(more)
	if e.reporting() || !f.closed {
		t.Error("events of the new port are filtered out")
	}
	e = events{floodedAt: trigger}
	e.setPorts(more)
	if e.reporting() || !slices.Equal(e.ports, more) {
		t.Errorf("in a flood: %v", e.ports)
	}
}

// TestEventsWait: wait reads events as they arrive, in a burst from time to time, and returns in
// time.
func TestEventsWait(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for name, bursting := range map[string]bool{"an event": false, "a burst": true} {
		hasRead := make(chan bool, 1)
		e := events{reader: &fakeEvents{fd: int(r.Fd()), read: func() { hasRead <- true }}}
		if bursting {
			e.missedAt = trigger
		} else {
			testutil.Must(w.WriteString("x"))
		}
		go e.wait(time.Now().Add(time.Hour))
		select {
		case <-hasRead:
		case <-time.After(testutil.Patience):
			t.Errorf("%s: not read", name)
		}
	}
	for name, e := range map[string]events{"without events": {}, "bursting": {missedAt: trigger, reader: &fakeEvents{}}} {
		until := time.Now().Add(30 * time.Millisecond)
		e.wait(until)
		if time.Now().Before(until) {
			t.Errorf("%s: wait returned early", name)
		}
	}
}
