package observe

import (
	"math"
	"net"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// usual is the configuration behind the times in tests.
var usual = traffic.Config{QuietFor: 3 * time.Second, MaxSilence: 30 * time.Second, Poll: 250 * time.Millisecond}

// listening returns a listener and a sampler of the port.
func listening(t *testing.T, start time.Time) (net.Listener, *Sampler) {
	t.Helper()
	netns.Need(t)
	l := testutil.Must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { l.Close() })
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	s := newSampler(Config{Start: start, Traffic: usual, Ports: []uint16{port}, Gate: stop.Gate{Until: stop.Quiet}}, nil)
	s.scan(start)
	s.observer.self.neighborSeen = true // the clients, in this process
	t.Cleanup(s.observer.close)
	return l, s
}

// TestFlood: during a flood of closed connections activity is certain, afterwards each
// event is read again. The times of the samples are simulated.
func TestFlood(t *testing.T) {
	start := time.Now()
	l, sampler := listening(t, start)
	events := &sampler.observer.events
	sample := func(at float64, want stop.TrafficState) {
		t.Helper()
		if got := sampler.sample(start.Add(time.Duration(at * float64(time.Second)))); got != want {
			t.Errorf("at %v s: %v, want %v", at, got, want)
		}
	}
	sample(0, stop.Busy)
	sample(3, stop.ConditionMet)
	events.floodedAt = start.Add(3100 * time.Millisecond)
	events.pause()
	sample(3.2, stop.Busy)
	sample(4, stop.Busy)
	sample(4.2, stop.Busy) // connections may have been missed until now
	if !events.reporting() {
		t.Fatal("events are still left unread")
	}
	sample(7.1, stop.Busy)
	sample(7.2, stop.ConditionMet)
	client := testutil.Must(net.Dial("tcp", l.Addr().String()))
	testutil.Must(client.Write([]byte("hello")))
	server := testutil.Must(l.Accept())
	testutil.Must(server.Read(make([]byte, 5)))
	client.Close()
	server.Close()
	testutil.Eventually(t, "an event is read", func() bool {
		sampler.sample(start.Add(7300 * time.Millisecond))
		return sampler.tracker.Summary().Accepted == 1
	})
	sample(7.4, stop.Busy)
}

// floods reports whether so many events, read at once, are a flood.
func floods(e *events, now time.Time, count int) bool {
	e.reader = &fakeEvents{lost: count}
	e.read(now)
	return !e.floodedAt.IsZero()
}

// TestFloodRate: events at a steady rate are too many above the limit and never below,
// whatever the interval of samples. A burst is not a flood.
func TestFloodRate(t *testing.T) {
	const s = float64(time.Second)
	for _, poll := range []float64{0.01, 0.1, 0.25, 1} {
		for rate, want := range map[float64]bool{0: false, 19_900: false, 20_100: true, 1e6: true} {
			var e events
			flood := floods(&e, trigger, 0)
			for at := poll; at < 5 && !flood; at += poll {
				flood = floods(&e, trigger.Add(time.Duration(at*s)), int(rate*poll))
			}
			if flood != want {
				t.Errorf("%v events a second, every %v s: too many is %v", rate, poll, flood)
			}
		}
	}
	var e events
	for at := 0.0; at < 10; at += 0.01 {
		burst := 0
		if math.Mod(at, 1) > 0.495 && math.Mod(at, 1) < 0.505 {
			burst = 4000
		}
		if floods(&e, trigger.Add(time.Duration(at*s)), burst) {
			t.Fatal("a burst was too many")
		}
	}
}

// TestFloodAgain: a flood ends after a second, and another flood may follow.
func TestFloodAgain(t *testing.T) {
	e := events{countedFrom: trigger}
	for round := range 3 {
		from := trigger.Add(time.Duration(10*round) * time.Second)
		if floods(&e, from, 0) || !floods(&e, from.Add(250*time.Millisecond), 5001) || e.reporting() {
			t.Fatal("no flood")
		}
		e.beginSample(from.Add(1240 * time.Millisecond))
		if e.floodedAt.IsZero() {
			t.Fatal("the flood did not last")
		}
		e.beginSample(from.Add(1250 * time.Millisecond))
		if !e.floodedAt.IsZero() {
			t.Fatal("the flood is not over")
		}
	}
}
