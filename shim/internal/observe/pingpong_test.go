package observe

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

var (
	serverEnd = netip.MustParseAddrPort("10.0.0.1:80")
	clientEnd = netip.MustParseAddrPort("10.0.0.2:4000")
)

// pingpongWorld is a connection and the table that shows the connection's state.
type pingpongWorld struct {
	cache    *pingpongCache
	at       time.Time
	pingpong bool
	fails    bool // no table
	reads    int
	received uint64
	age      time.Duration // of the last bytes
}

func newPingpongWorld() *pingpongWorld {
	w := &pingpongWorld{at: trigger, pingpong: true, received: 10, age: 2 * time.Second}
	w.cache = &pingpongCache{entries: map[uint64]pingpongEntry{}, readTable: w.readTable}
	return w
}

func (w *pingpongWorld) readTable(visit func(local, remote netip.AddrPort, pingpong bool)) error {
	w.reads++
	if w.fails {
		return errors.New("no such file")
	}
	visit(serverEnd, clientEnd, w.pingpong)
	visit(clientEnd, serverEnd, true) // the other end
	return nil
}

// sample returns Info.PingPong of the connection in the next sample.
func (w *pingpongWorld) sample(after time.Duration) bool {
	w.at = w.at.Add(after)
	w.cache.beginSample(w.at)
	s := &tcp.Socket{State: tcp.Established, Local: serverEnd, Remote: clientEnd, HasInfo: true, Info: tcp.Info{
		LastSent: w.age, LastReceived: w.age, LastAcked: w.age, Received: w.received, Sent: 5, Segments: 2}}
	w.cache.apply(s)
	return s.Info.PingPong
}

// TestPingPong: an entry counts for a connection whose bytes are unchanged since the table
// was read. The table is read for new entries, at most once a second.
func TestPingPong(t *testing.T) {
	w := newPingpongWorld()
	const poll = 250 * time.Millisecond
	for i, step := range []struct {
		after  time.Duration
		change func()
		want   bool
		reads  int
	}{
		{poll, func() {}, false, 0}, // the first sample finds the entry missing
		{poll, func() {}, true, 1},  // the second has the table read
		{poll, func() {}, true, 1},  // once
		{poll, func() { w.received, w.pingpong = 20, false }, false, 1},
		{poll, func() {}, false, 1}, // within a second
		{time.Second, func() {}, false, 2},
		{poll, func() { w.received, w.pingpong = 30, true }, false, 2},
		{time.Second, func() { w.received = 40 }, false, 3}, // bytes since the table was read
		{time.Second, func() {}, true, 4},
		{poll, func() { w.age = 100 * time.Millisecond }, false, 4}, // not ambiguous: the entry is dropped
		{poll, func() { w.age = 2 * time.Second }, false, 4},
		{time.Second, func() { w.fails = true }, false, 5},
		{time.Second, func() {}, false, 6}, // unknown after an error
	} {
		step.change()
		if got := w.sample(step.after); got != step.want || w.reads != step.reads {
			t.Errorf("step %d: %v after %d reads, want %v after %d", i, got, w.reads, step.want, step.reads)
		}
	}
	for range 3 { // samples without the connection
		w.cache.beginSample(w.at)
	}
	if len(w.cache.entries) > 0 {
		t.Errorf("entries left: %v", w.cache.entries)
	}
}
