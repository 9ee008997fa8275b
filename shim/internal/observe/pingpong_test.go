package observe

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestReplies: what the table says counts for a connection on which nothing has moved
// since before it was read; it is read for new ones, once a second at most.
func TestReplies(t *testing.T) {
	local, remote := netip.MustParseAddrPort("10.0.0.1:80"), netip.MustParseAddrPort("10.0.0.2:4000")
	prompt, fails, reads := true, false, 0
	r := &replies{known: map[uint64]reply{}, list: func(tell func(local, remote netip.AddrPort, prompt bool)) error {
		if reads++; fails {
			return errors.New("there is none")
		}
		tell(local, remote, prompt)
		tell(remote, local, true) // somebody else's
		return nil
	}}
	received, age := uint64(10), 2*time.Second
	at := time.Unix(100, 0)
	look := func(after time.Duration) bool {
		at = at.Add(after)
		r.begin(at)
		s := &tcp.Socket{State: tcp.Established, Local: local, Remote: remote, HasInfo: true, Info: tcp.Info{
			LastSent: age, LastReceived: age, LastAcked: age, Received: received, Sent: 5, Segments: 2}}
		r.tell(s)
		return s.Info.PingPong
	}
	const poll = 250 * time.Millisecond
	for i, step := range []struct {
		after time.Duration
		then  func()
		want  bool
		reads int
	}{
		{poll, func() {}, false, 0}, // it asks
		{poll, func() {}, true, 1},  // and is answered
		{poll, func() {}, true, 1},  // once
		{poll, func() { received, prompt = 20, false }, false, 1},
		{poll, func() {}, false, 1}, // not so soon again
		{time.Second, func() {}, false, 2},
		{poll, func() { received, prompt = 30, true }, false, 2},
		{time.Second, func() { received = 40 }, false, 3}, // what was read is of before
		{time.Second, func() {}, true, 4},
		{poll, func() { age = 100 * time.Millisecond }, false, 4}, // in no doubt: in flight
		{poll, func() { age = 2 * time.Second }, false, 4},        // and forgotten meanwhile
		{time.Second, func() { fails = true }, false, 5},
		{time.Second, func() {}, false, 6}, // an error is no answer
	} {
		step.then()
		if got := look(step.after); got != step.want || reads != step.reads {
			t.Errorf("step %d: %v after %d reads, want %v after %d", i, got, reads, step.want, step.reads)
		}
	}
	for range 3 { // it is gone
		r.begin(at)
	}
	if len(r.known) > 0 {
		t.Errorf("it remembers %v", r.known)
	}
}
