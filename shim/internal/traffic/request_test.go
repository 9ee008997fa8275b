package traffic

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// rule is a line of Classify's doc comment.
type rule struct {
	when    string
	applies func(s *tcp.Socket) bool
	then    RequestState
}

// testUsual is usual for the sockets of eachSocket.
var testUsual = Usual{PureACKs: 1}

// rules are the lines, in order.
var rules = []rule{
	{"a listener, or TIME_WAIT", func(s *tcp.Socket) bool { return s.State == tcp.Listen || s.State == tcp.TimeWait }, Idle},
	{"the peer no longer answers", func(s *tcp.Socket) bool {
		return s.Retries > 5 && (!s.HasInfo || s.Info.LastSent >= time.Second)
	}, Idle},
	{"unread or unsent bytes", func(s *tcp.Socket) bool { return s.Unread+s.Unsent > 0 }, InFlight},
	{"no tcp_info, nothing received, or closed by the program", func(s *tcp.Socket) bool {
		return !s.HasInfo || s.Info.Received == 0 || s.State != tcp.Established && s.State != tcp.CloseWait
	}, Idle},
	{"nothing sent, or received later than sent", func(s *tcp.Socket) bool { return s.Info.Sent == 0 || sinceSent(s) > 0 }, InFlight},
	{"sent later than received, or only one data segment received", func(s *tcp.Socket) bool {
		return sinceSent(s) < 0 || s.Info.Segments == 1
	}, Idle},
	{"both in one jiffy, last ACK later by < 0.8 s", func(s *tcp.Socket) bool {
		return s.Info.LastAcked < s.Info.LastSent && s.Info.LastSent-s.Info.LastAcked < 800*time.Millisecond
	}, Idle},
	{"both in one jiffy, < 0.8 s ago", func(s *tcp.Socket) bool { return s.Info.LastSent < 800*time.Millisecond }, Tie},
	{"half-closed by the peer, both in one jiffy", func(s *tcp.Socket) bool { return s.State == tcp.CloseWait }, Tie},
	{"both in one jiffy, last ACK >= 0.8 s after it, PingPong", func(s *tcp.Socket) bool {
		return s.Info.PingPong && s.Info.LastSent-s.Info.LastAcked >= 800*time.Millisecond
	}, Idle},
	{"both in one jiffy, PingPong, pure ACKs and segments as usual", func(s *tcp.Socket) bool { return s.Info.PingPong && testUsual.answered(&s.Info) }, Idle},
	{"both in one jiffy", func(*tcp.Socket) bool { return true }, Tie},
}

// sinceSent is how long after the last byte sent the last byte was received.
func sinceSent(s *tcp.Socket) time.Duration { return s.Info.LastSent - s.Info.LastReceived }

// String returns the state as the doc comment of [Classify] spells it.
func (r RequestState) String() string { return [...]string{"idle", "in flight", "a tie"}[r] }

// TestClassifyRules holds Classify against its doc comment, for sockets with all
// combinations of values around each limit.
func TestClassifyRules(t *testing.T) {
	source, err := os.ReadFile("request.go")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&table, "//\t%-61s %v\n", r.when, r.then)
	}
	if !strings.Contains(string(source), "//\n"+table.String()+"//\n") {
		t.Errorf("the doc comment of Classify should have\n%s", table.String())
	}
	applied := make([]int, len(rules))
	eachSocket(func(s *tcp.Socket) {
		for i, r := range rules {
			if r.applies(s) {
				applied[i]++
				if got := Classify(s, testUsual); got != r.then && !t.Failed() {
					t.Errorf("%s: %v for %+v", r.when, got, *s)
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
		for bits := range 1 << 7 {
			has := func(bit int) uint32 { return uint32(bits >> bit & 1) }
			for _, sent := range ages {
				for _, received := range ages {
					for _, acked := range ages {
						for pure := range uint32(4) {
							segs := [...][2]uint32{{0, 0}, {1, 1}, {3, 1}, {3, 2}, {3, 5}}[(bits+int(pure))%5]
							f(&tcp.Socket{State: state, HasInfo: has(0) == 1, Unread: pure / 3 * has(1), Unsent: pure / 3 * has(2), Retries: uint8(5 + has(6)), Info: tcp.Info{
								LastSent: sent, LastReceived: received, LastAcked: acked,
								Received: uint64(has(3)), Sent: uint64(has(4)), Segments: segs[0], SentSegments: segs[1], PureACKs: pure, PingPong: has(5) == 1}})
						}
					}
				}
			}
		}
	}
}

func equalSegments(info tcp.Info) tcp.Info { return segments(info, info.Segments, info.Segments) }

func segments(info tcp.Info, received, sent uint32) tcp.Info {
	info.Segments, info.SentSegments = received, sent
	return info
}

// TestClassify has cases measured on real connections, some within one jiffy.
func TestClassify(t *testing.T) {
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
		i.Segments, i.SentSegments = 2, 1
		i.PureACKs = pure
		i.PingPong = pingpong
		return i
	}
	for name, c := range map[string]struct {
		sock tcp.Socket
		want RequestState
	}{
		"preconnected":               {tcp.Socket{State: tcp.Established, Info: info(1504, 1504, 1504, 0, 0)}, Idle},
		"answered":                   {tcp.Socket{State: tcp.Established, Info: info(1504, 1508, 1504, 4, 4)}, Idle},
		"first request":              {tcp.Socket{State: tcp.Established, Info: info(1004, 1004, 1004, 4, 0)}, InFlight},
		"second request":             {tcp.Socket{State: tcp.Established, Info: info(1004, 700, 700, 8, 4)}, InFlight},
		"answered in the same jiffy": {tcp.Socket{State: tcp.Established, Info: info(100, 100, 96, 4, 4)}, Idle},
		"asked in the same jiffy":    {tcp.Socket{State: tcp.Established, Info: tie(2, 5000, 5000, false)}, Tie},
		"read before the response":   {tcp.Socket{State: tcp.Established, Info: tie(2, 5000, 5000, true)}, Tie},
		"idle, answered slowly once": {tcp.Socket{State: tcp.Established, Info: equalSegments(tie(3, 5000, 5000, true))}, Idle},
		"waits, long responses":      {tcp.Socket{State: tcp.Established, Info: segments(tie(2, 5000, 5000, true), 7, 28)}, Tie},
		"segments unknown":           {tcp.Socket{State: tcp.Established, Info: segments(tie(tcp.PureACKsUnknown, 5000, 5000, true), 0, 0)}, Tie},
		"waits, as many segments":    {tcp.Socket{State: tcp.Established, Info: equalSegments(tie(3, 5000, 5000, false))}, Tie},
		"without quick acks":         {tcp.Socket{State: tcp.Established, Info: tie(1, 5000, 5000, false)}, Tie},
		"answered, and acknowledged": {tcp.Socket{State: tcp.Established, Info: equalSegments(tie(1, 5000, 5000, true))}, Idle},
		"the server spoke first":     {tcp.Socket{State: tcp.Established, Info: segments(tie(1, 5000, 5000, true), 6, 5)}, Tie},
		"not yet acknowledged":       {tcp.Socket{State: tcp.Established, Info: tie(1, 700, 700, true)}, Tie},
		"pure ACKs unknown":          {tcp.Socket{State: tcp.Established, Info: tie(tcp.PureACKsUnknown, 5000, 5000, true)}, Tie},
		"waits, with keep-alive":     {tcp.Socket{State: tcp.Established, Info: tie(3, 5000, 500, false)}, Tie},
		"idle, with keep-alive":      {tcp.Socket{State: tcp.Established, Info: tie(3, 5000, 500, true)}, Idle},
		"first, with keep-alive":     {tcp.Socket{State: tcp.Established, Info: probed}, Idle},
		"first, nearby peer":         {tcp.Socket{State: tcp.Established, Info: first}, Idle},
		"unread":                     {tcp.Socket{State: tcp.Established, Unread: 1, Info: info(1, 2, 1, 4, 4)}, InFlight},
		"unsent":                     {tcp.Socket{State: tcp.Established, Unsent: 1, Info: info(1, 2, 1, 4, 4)}, InFlight},
		"half-closed":                {tcp.Socket{State: tcp.CloseWait, Info: info(100, 1, 1, 4, 4)}, InFlight},
		"half-closed, unsent":        {tcp.Socket{State: tcp.CloseWait, Unsent: 5, Info: info(1, 100, 1, 4, 4)}, InFlight},
		"a listener's queue":         {tcp.Socket{State: tcp.Listen, Unread: 5}, Idle},
	} {
		c.sock.HasInfo = true
		if got := Classify(&c.sock, testUsual); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestInFlightWithoutQuickAcks: if the program has turned off the kernel's first pure ACK,
// a single pure ACK belongs to a request that waits.
func TestInFlightWithoutQuickAcks(t *testing.T) {
	s := func(cookie uint64, pure, sentSegments uint32) *tcp.Socket {
		at := 5 * time.Second
		return &tcp.Socket{State: tcp.Established, Remote: netip.MustParseAddrPort("10.0.0.7:1024"), Cookie: cookie, HasInfo: true,
			Info: tcp.Info{LastSent: at, LastReceived: at, LastAcked: at, Received: 8, Sent: 4, Segments: 2, SentSegments: sentSegments, PureACKs: pure, PingPong: true}}
	}
	answered := func(cookie uint64, pure uint32) *tcp.Socket { return s(cookie, pure, 2) }
	waits := func(cookie uint64, pure uint32) *tcp.Socket { return s(cookie, pure, 1) }
	for name, c := range map[string]struct {
		seen []*tcp.Socket
		want int
	}{
		"all answered":          {[]*tcp.Socket{answered(1, 1), answered(2, 1)}, 0},
		"one waits":             {[]*tcp.Socket{answered(1, 1), waits(2, 2)}, 1},
		"turned off":            {[]*tcp.Socket{answered(1, 0), answered(2, 0)}, 0},
		"turned off, one waits": {[]*tcp.Socket{answered(1, 0), waits(2, 1)}, 1},
		"the other way round":   {[]*tcp.Socket{waits(2, 1), answered(1, 0)}, 1},
		"acknowledged before":   {[]*tcp.Socket{waits(1, 3)}, 1},
		"pure ACKs unknown":     {[]*tcp.Socket{waits(1, tcp.PureACKsUnknown)}, 1},
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
