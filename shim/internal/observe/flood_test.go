package observe

import (
	"net"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// TestFlood: while too many connections end for anybody to listen, there is
// activity; when they no longer do, each is heard of again. The looks' times are
// not the clock's.
func TestFlood(t *testing.T) {
	netns.Need(t)
	l := testutil.Must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	start := time.Now()
	cfg := traffic.Config{QuietFor: 3 * time.Second, MaxSilence: 30 * time.Second, Poll: 250 * time.Millisecond}
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	w := newSampler(Config{Start: start, Traffic: cfg, Ports: []uint16{port}, Until: stop.Quiet})
	w.open(w.cfg.Ports)
	defer w.close()
	look := func(at float64, want stop.TrafficState) {
		t.Helper()
		if got := w.sample(start.Add(time.Duration(at * float64(time.Second)))); got != want {
			t.Errorf("at %v s: %v, want %v", at, got, want)
		}
	}
	look(0, stop.Busy)
	look(3, stop.ConditionMet)
	w.flood.Add(start.Add(3100*time.Millisecond), 1e6)
	w.events.Close()
	w.events = nil
	look(3.2, stop.Busy)
	look(4, stop.Busy)
	look(4.2, stop.Busy) // what came before that was not heard
	if w.events == nil {
		t.Fatal("it does not listen again")
	}
	look(7.1, stop.Busy)
	look(7.2, stop.ConditionMet)
	client := testutil.Must(net.Dial("tcp", l.Addr().String()))
	testutil.Must(l.Accept()).Close()
	client.Close()
	testutil.Eventually(t, "it is heard of", func() bool {
		w.see(start.Add(7300*time.Millisecond), w.tracker)
		return w.tracker.Summary().Accepted == 1
	})
	look(7.4, stop.Busy)
}
