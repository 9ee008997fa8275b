package traffic

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// rule is a line of InFlight's doc comment.
type rule struct {
	when    string
	applies func(s *tcp.Socket) bool
	then    string
	want    func(s *tcp.Socket) bool
}

const testMinPureACKs = 1

// rules are the lines, in order.
var rules = []rule{
	{"a listener, or TIME_WAIT", func(s *tcp.Socket) bool { return s.State == tcp.Listen || s.State == tcp.TimeWait }, "idle", alwaysIdle},
	{"unread or unsent bytes", func(s *tcp.Socket) bool { return s.Unread+s.Unsent > 0 }, "in flight", alwaysInFlight},
	{"no tcp_info, nothing received, or half-closed", func(s *tcp.Socket) bool {
		return !s.HasInfo || s.Info.Received == 0 || s.State != tcp.Established
	}, "idle", alwaysIdle},
	{"nothing sent, or received later than sent", func(s *tcp.Socket) bool { return s.Info.Sent == 0 || sinceSent(s) > 0 }, "in flight", alwaysInFlight},
	{"sent later than received, or only one data segment received", func(s *tcp.Socket) bool {
		return sinceSent(s) < 0 || s.Info.Segments == 1
	}, "idle", alwaysIdle},
	{"both in one jiffy, < 0.8 s ago", func(s *tcp.Socket) bool { return s.Info.LastSent < 800*time.Millisecond }, "in flight if the last ACK came in that jiffy too", ackedAtOnce},
	{"both in one jiffy, earlier; last ACK in it", ackedAtOnce, "in flight unless PingPong and PureACKs <= minPureACKs", func(s *tcp.Socket) bool {
		return !s.Info.PingPong || s.Info.PureACKs > testMinPureACKs
	}},
	{"both in one jiffy, earlier; last ACK >= 0.8 s after it", func(s *tcp.Socket) bool {
		return s.Info.LastSent-s.Info.LastAcked >= 800*time.Millisecond
	}, "in flight unless PingPong (the peer answered our probe)", func(s *tcp.Socket) bool { return !s.Info.PingPong }},
	{"both in one jiffy, earlier; last ACK between", func(s *tcp.Socket) bool { return true }, "idle", alwaysIdle},
}

func alwaysInFlight(*tcp.Socket) bool { return true }
func alwaysIdle(*tcp.Socket) bool     { return false }

// sinceSent is how long after the last byte sent the last byte was received.
func sinceSent(s *tcp.Socket) time.Duration { return s.Info.LastSent - s.Info.LastReceived }

func ackedAtOnce(s *tcp.Socket) bool { return s.Info.LastAcked == s.Info.LastSent }

// TestInFlightRules holds InFlight against its doc comment, for sockets with all
// combinations of values around each limit.
func TestInFlightRules(t *testing.T) {
	source, err := os.ReadFile("inflight.go")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&table, "//\t%-61s %s\n", r.when, r.then)
	}
	if !strings.Contains(string(source), "//\n"+table.String()+"//\n") {
		t.Errorf("the doc comment of InFlight should have\n%s", table.String())
	}
	applied := make([]int, len(rules))
	eachSocket(func(s *tcp.Socket) {
		for i, r := range rules {
			if r.applies(s) {
				applied[i]++
				if got := InFlight(s, testMinPureACKs); got != r.want(s) && !t.Failed() {
					t.Errorf("%s: in flight is %v for %+v", r.when, got, *s)
				}
				return
			}
		}
	})
	for i, r := range rules {
		if applied[i] == 0 {
			t.Errorf("%s: applies to no socket", r.when)
		}
	}
}

// eachSocket calls f with sockets of all combinations.
func eachSocket(f func(s *tcp.Socket)) {
	ages := []time.Duration{0, 4 * time.Millisecond, 796 * time.Millisecond, 800 * time.Millisecond, 804 * time.Millisecond, 1604 * time.Millisecond, 5 * time.Second}
	for _, state := range []tcp.State{tcp.Established, tcp.CloseWait, tcp.FinWait2, tcp.Listen, tcp.TimeWait} {
		for bits := range 1 << 6 {
			has := func(bit int) uint32 { return uint32(bits >> bit & 1) }
			for _, sent := range ages {
				for _, received := range ages {
					for _, acked := range ages {
						for pure := range uint32(3) {
							f(&tcp.Socket{State: state, HasInfo: has(0) == 1, Unread: pure / 2 * has(1), Unsent: pure / 2 * has(2), Info: tcp.Info{
								LastSent: sent, LastReceived: received, LastAcked: acked,
								Received: uint64(has(3)), Sent: uint64(has(4)), Segments: 1 + has(1), PureACKs: pure, PingPong: has(5) == 1}})
						}
					}
				}
			}
		}
	}
}

// TestInFlight has cases measured on real connections, some within one jiffy.
func TestInFlight(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	info := func(sent, received, acked int, in, out uint64) tcp.Info {
		return tcp.Info{LastSent: ms(sent), LastReceived: ms(received), LastAcked: ms(acked), Received: in, Sent: out}
	}
	first := info(100, 100, 100, 8, 4)
	first.Segments = 1
	probed := info(5000, 5000, 500, 8, 4)
	probed.Segments, probed.PureACKs = 1, 2
	tie := func(pure uint32, at, acked int, pingpong bool) tcp.Info {
		i := info(at, at, acked, 8, 4)
		i.Segments, i.PureACKs = 2, pure
		i.PingPong = pingpong
		return i
	}
	for name, c := range map[string]struct {
		sock tcp.Socket
		want bool
	}{
		"preconnected":               {tcp.Socket{State: tcp.Established, Info: info(1504, 1504, 1504, 0, 0)}, false},
		"answered":                   {tcp.Socket{State: tcp.Established, Info: info(1504, 1508, 1504, 4, 4)}, false},
		"first request":              {tcp.Socket{State: tcp.Established, Info: info(1004, 1004, 1004, 4, 0)}, true},
		"second request":             {tcp.Socket{State: tcp.Established, Info: info(1004, 700, 700, 8, 4)}, true},
		"answered in the same jiffy": {tcp.Socket{State: tcp.Established, Info: info(100, 100, 96, 4, 4)}, false},
		"asked in the same jiffy":    {tcp.Socket{State: tcp.Established, Info: tie(2, 5000, 5000, false)}, true},
		"read before the response":   {tcp.Socket{State: tcp.Established, Info: tie(2, 5000, 5000, true)}, true},
		"without quick acks":         {tcp.Socket{State: tcp.Established, Info: tie(1, 5000, 5000, false)}, true},
		"answered, and acknowledged": {tcp.Socket{State: tcp.Established, Info: tie(1, 5000, 5000, true)}, false},
		"not yet acknowledged":       {tcp.Socket{State: tcp.Established, Info: tie(1, 700, 700, true)}, true},
		"pure ACKs unknown":          {tcp.Socket{State: tcp.Established, Info: tie(tcp.PureACKsUnknown, 5000, 5000, true)}, true},
		"waits, with keep-alive":     {tcp.Socket{State: tcp.Established, Info: tie(3, 5000, 500, false)}, true},
		"idle, with keep-alive":      {tcp.Socket{State: tcp.Established, Info: tie(3, 5000, 500, true)}, false},
		"first, with keep-alive":     {tcp.Socket{State: tcp.Established, Info: probed}, false},
		"first, nearby peer":         {tcp.Socket{State: tcp.Established, Info: first}, false},
		"unread":                     {tcp.Socket{State: tcp.Established, Unread: 1, Info: info(1, 2, 1, 4, 4)}, true},
		"unsent":                     {tcp.Socket{State: tcp.Established, Unsent: 1, Info: info(1, 2, 1, 4, 4)}, true},
		"half-closed":                {tcp.Socket{State: tcp.CloseWait, Info: info(100, 1, 1, 4, 4)}, false},
		"half-closed, unsent":        {tcp.Socket{State: tcp.CloseWait, Unsent: 5, Info: info(1, 100, 1, 4, 4)}, true},
		"a listener's queue":         {tcp.Socket{State: tcp.Listen, Unread: 5}, false},
	} {
		c.sock.HasInfo = true
		if got := InFlight(&c.sock, 1); got != c.want {
			t.Errorf("%s: in flight is %v", name, got)
		}
	}
}

// TestInFlightWithoutQuickAcks: if the program has turned off the kernel's first pure ACK,
// a single pure ACK belongs to a request that waits.
func TestInFlightWithoutQuickAcks(t *testing.T) {
	s := func(cookie uint64, pure uint32) *tcp.Socket {
		at := 5 * time.Second
		return &tcp.Socket{State: tcp.Established, Cookie: cookie, HasInfo: true,
			Info: tcp.Info{LastSent: at, LastReceived: at, LastAcked: at, Received: 8, Sent: 4, Segments: 2, PureACKs: pure, PingPong: true}}
	}
	for name, c := range map[string]struct {
		seen []*tcp.Socket
		want int
	}{
		"all answered":          {[]*tcp.Socket{s(1, 1), s(2, 1)}, 0},
		"one waits":             {[]*tcp.Socket{s(1, 1), s(2, 2)}, 1},
		"turned off":            {[]*tcp.Socket{s(1, 0), s(2, 0)}, 0},
		"turned off, one waits": {[]*tcp.Socket{s(1, 0), s(2, 1)}, 1},
		"the other way round":   {[]*tcp.Socket{s(2, 1), s(1, 0)}, 1},
		"acknowledged before":   {[]*tcp.Socket{s(1, 3)}, 1},
		"pure ACKs unknown":     {[]*tcp.Socket{s(1, tcp.PureACKsUnknown)}, 1},
	} {
		tr := New(Config{QuietFor: time.Second, MaxSilence: time.Minute}, time.Unix(0, 0))
		for second := range 2 { // the first sample finds the lowest number of pure ACKs
			tr.Begin(time.Unix(int64(second), 0))
			for _, s := range c.seen {
				tr.Observe(s)
			}
			tr.End(Rest{})
		}
		if got := tr.Summary().InFlight; got != c.want {
			t.Errorf("%s: %d in flight, want %d", name, got, c.want)
		}
	}
}
