package observe

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// fakeEvents is an eventReader with a given number of events.
type fakeEvents struct {
	count, lost int
	err         error
	closed      bool
	ports       []uint16
}

func (f *fakeEvents) SetPorts(ports []uint16) error {
	f.ports = ports
	return f.err
}

func (f *fakeEvents) Read(visit func(*tcp.Socket)) (lost int, err error) {
	var s tcp.Socket // reused, as by sockdiag
	for i := range f.count {
		s = tcp.Socket{Cookie: uint64(i + 1), Local: serverEnd, Remote: clientEnd}
		visit(&s)
	}
	f.count = 0
	return f.lost, f.err
}

func (f *fakeEvents) FD() int      { return -1 }
func (f *fakeEvents) Close() error { f.closed = true; return nil }

func none(*tcp.Socket) bool { return false }

// TestEventsMissed: lost events and errors are noted, and make a burst of few.
func TestEventsMissed(t *testing.T) {
	for name, c := range map[string]struct {
		reader   fakeEvents
		missed   bool
		bursting bool
	}{
		"few":   {fakeEvents{count: burstThreshold}, false, false},
		"many":  {fakeEvents{count: burstThreshold + 1}, false, true},
		"lost":  {fakeEvents{lost: 1}, true, true},
		"error": {fakeEvents{err: errDenied}, true, true},
	} {
		e := events{reader: &c.reader}
		e.beginSample(trigger)
		e.read(trigger)
		bursting := e.bursting()
		var rest traffic.Rest
		e.endSample(&rest, none)
		if missed := !rest.MissedAt.IsZero(); missed != c.missed || bursting != c.bursting {
			t.Errorf("%s: missed %v, bursting %v", name, missed, bursting)
		}
	}
}

// TestEventsPaused: in a flood the groups are left for a second, during which activity is
// certain.
func TestEventsPaused(t *testing.T) {
	netns.Need(t)
	f := &fakeEvents{count: 6000}
	e := events{reader: f, ports: []uint16{80}, countedFrom: trigger}
	e.beginSample(trigger)
	e.read(trigger)
	if e.reporting() || !e.floodedAt.Equal(trigger) || !f.closed {
		t.Fatal("6000 events at once are not a flood")
	}
	for _, step := range strings.Fields("0s:missed 500ms:missed 1s:missed,reporting 1.25s:reporting") {
		after, want, _ := strings.Cut(step, ":")
		at := trigger.Add(testutil.Must(time.ParseDuration(after)))
		e.beginSample(at)
		var rest traffic.Rest
		e.endSample(&rest, none)
		if rest.MissedAt.Equal(at) != strings.Contains(want, "missed") || e.reporting() != strings.Contains(want, "reporting") {
			t.Errorf("%s: missed at %v, reporting %v", step, rest.MissedAt, e.reporting())
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

// TestEventsWait: wait returns in time, and reads an event that arrives meanwhile.
func TestEventsWait(t *testing.T) {
	l, sampler := listening(t, time.Now())
	e := &sampler.observer.events
	client := testutil.Must(dial(l))
	server := testutil.Must(l.Accept())
	e.beginSample(time.Now())
	done := make(chan bool)
	go func() {
		server.Close()
		client.Close()
		close(done)
	}()
	began := time.Now()
	for len(e.closed) == 0 && time.Since(began) < testutil.Patience {
		e.wait(time.Now().Add(50 * time.Millisecond))
	}
	<-done
	if len(e.closed) != 1 || !e.closed[0].At.After(began) {
		t.Errorf("%+v", e.closed)
	}
	for _, bursting := range []bool{false, true} {
		if bursting {
			e.missedAt = time.Now()
		}
		until := time.Now().Add(30 * time.Millisecond)
		e.wait(until)
		if time.Now().Before(until) {
			t.Error("wait returned early")
		}
	}
}
