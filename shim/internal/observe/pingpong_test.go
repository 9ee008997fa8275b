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

// TestPingPong: an entry counts for a connection whose bytes are unchanged since the table
// was read. The table is read for new entries, at most once a second.
func TestPingPong(t *testing.T) {
	pingpong, fails, reads := true, false, 0
	c := &pingpongCache{entries: map[uint64]pingpongEntry{}, readTable: func(visit func(local, remote netip.AddrPort, pingpong bool)) error {
		reads++
		if fails {
			return errors.New("no such file")
		}
		visit(serverEnd, clientEnd, pingpong)
		visit(clientEnd, serverEnd, true) // the other end
		return nil
	}}
	received, age := uint64(10), 2*time.Second
	at := time.Unix(100, 0)
	sample := func(after time.Duration) bool {
		at = at.Add(after)
		c.beginSample(at)
		s := &tcp.Socket{State: tcp.Established, Local: serverEnd, Remote: clientEnd, HasInfo: true, Info: tcp.Info{
			LastSent: age, LastReceived: age, LastAcked: age, Received: received, Sent: 5, Segments: 2}}
		c.apply(s)
		return s.Info.PingPong
	}
	const poll = 250 * time.Millisecond
	for i, step := range []struct {
		after time.Duration
		then  func()
		want  bool
		reads int
	}{
		{poll, func() {}, false, 0}, // the first sample finds the entry missing
		{poll, func() {}, true, 1},  // the second has the table read
		{poll, func() {}, true, 1},  // once
		{poll, func() { received, pingpong = 20, false }, false, 1},
		{poll, func() {}, false, 1}, // within a second
		{time.Second, func() {}, false, 2},
		{poll, func() { received, pingpong = 30, true }, false, 2},
		{time.Second, func() { received = 40 }, false, 3}, // bytes since the table was read
		{time.Second, func() {}, true, 4},
		{poll, func() { age = 100 * time.Millisecond }, false, 4}, // not ambiguous: the entry is dropped
		{poll, func() { age = 2 * time.Second }, false, 4},
		{time.Second, func() { fails = true }, false, 5},
		{time.Second, func() {}, false, 6}, // unknown after an error
	} {
		step.then()
		if got := sample(step.after); got != step.want || reads != step.reads {
			t.Errorf("step %d: %v after %d reads, want %v after %d", i, got, reads, step.want, step.reads)
		}
	}
	for range 3 { // samples without the connection
		c.beginSample(at)
	}
	if len(c.entries) > 0 {
		t.Errorf("entries left: %v", c.entries)
	}
}
