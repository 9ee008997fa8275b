package shim

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
	w := newWatcher(&plan{traffic: cfg, ports: []uint16{port}, stop: stop.Config{Gate: stop.Gate{Until: stop.Quiet}}}, start)
	w.open(w.plan.ports)
	defer w.close()
	look := func(at float64, want stop.TrafficState) {
		t.Helper()
		if got := w.look(start.Add(time.Duration(at * float64(time.Second)))); got != want {
			t.Errorf("at %v s: %v, want %v", at, got, want)
		}
	}
	look(0, stop.Busy)
	look(3, stop.ConditionMet)
	w.flood.Heard(start.Add(3100*time.Millisecond), 1e6)
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
	testutil.Eventually(t, "it is heard of", func() bool { w.see(start.Add(7300*time.Millisecond), w.judge); return w.judge.Report().Accepted == 1 })
	look(7.4, stop.Busy)
}

// TestLastLook: a look is taken just before a hold ends, whatever the pause.
func TestLastLook(t *testing.T) {
	for _, gate := range []stop.Gate{{Floor: 2 * time.Second}, {Until: Quiet, Floor: time.Second, Ceiling: 2 * time.Second}} {
		p := &plan{}
		p.stop.Gate, p.traffic.Poll = gate, 250*time.Millisecond
		for _, at := range []time.Duration{1800 * time.Millisecond, 1950 * time.Millisecond, 1990 * time.Millisecond} {
			w := &watcher{plan: p, start: time.Now().Add(-at)}
			if pause := w.pause(time.Now()); pause > 2*time.Second-at-lead || pause <= 0 {
				t.Errorf("%v: at %v the pause is %v", &gate, at, pause)
			}
		}
	}
}
