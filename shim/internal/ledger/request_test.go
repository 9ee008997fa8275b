package ledger

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
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
	var ages []time.Duration
	for _, ms := range []time.Duration{0, 4, 796, 800, 804, 1604, 5000} {
		ages = append(ages, ms*time.Millisecond)
	}
	for _, state := range []tcp.State{tcp.Established, tcp.CloseWait, tcp.FinWait2, tcp.Listen, tcp.TimeWait} {
		for bits := range 1 << 7 {
			has := func(bit int) uint32 { return uint32(bits >> bit & 1) }
			for _, sent := range ages {
				for _, received := range ages {
					for _, acked := range ages {
						for pure := range uint32(4) {
							segs := [...][2]uint32{{0, 0}, {1, 1}, {3, 1}, {3, 2}, {3, 5}}[(bits+int(pure))%5]
							f(&tcp.Socket{
								State: state, HasInfo: has(0) == 1, Retries: uint8(5 + has(6)),
								Unread: pure / 3 * has(1), Unsent: pure / 3 * has(2),
								Info: tcp.Info{
									LastSent: sent, LastReceived: received, LastAcked: acked,
									Received: uint64(has(3)), Sent: uint64(has(4)),
									Segments: segs[0], SentSegments: segs[1], PureACKs: pure, PingPong: has(5) == 1,
								},
							})
						}
					}
				}
			}
		}
	}
}

// TestNotice: what lameduck writes into a connection is no activity, and answers no request, even one
// that has come since the latest sample.
func TestNotice(t *testing.T) {
	for _, cells := range tables.Rows(`
		# name | received since sent | received in between | the request then
		idle      | 0   | 0   | idle
		in flight | 300 | 0   | in flight
		new       | 0   | 300 | in flight
		a tie     | tie | 0   | a tie
	`) {
		var waiting, in uint64
		fmt.Sscan(cells[1], &waiting)
		fmt.Sscan(cells[2], &in)
		l := New(Config{MaxTie: 9 * time.Second})
		s := socket(5)
		s.Info = tcp.Info{Received: 500, Sent: 900, Acked: 900, Segments: 5, SentSegments: 5, LastReceived: time.Second, LastSent: time.Second / 2}
		sample := func(at time.Duration) *Conn {
			now := time.Time{}.Add(at)
			l.Begin(now)
			l.Observe(&s, Clients)
			return l.End(Rest{}).Conns[0]
		}
		receive := func(n uint64) {
			if n > 0 {
				s.Info.Received += n
				s.Info.Segments++
				s.Info.LastReceived = time.Second / 4
			}
		}
		sample(time.Second)
		receive(waiting)
		if cells[1] == "tie" {
			s.Info.LastReceived, s.Info.LastSent, s.Info.LastAcked = time.Second, time.Second, time.Second
		}
		c := sample(2 * time.Second)
		moved := c.Moved
		receive(in)
		c.NoteNotice(&s, Usual{}, 19)
		s.Info.Sent += 19
		s.Info.SentSegments++
		s.Info.LastSent, s.Info.LastReceived = time.Second/10, time.Second/5
		c = sample(3 * time.Second)
		if got := fmt.Sprint(c.Request); got != cells[3] || in == 0 && c.Moved != moved {
			t.Errorf("%s: the request is %s, want %s; the last byte moved at %v, %v before", cells[0], got, cells[3], c.Moved, moved)
		}
		s.Info.Sent += 200
		s.Info.LastSent = 0
		if c = sample(4 * time.Second); c.Request != Idle || c.Moved != l.sample.Now {
			t.Errorf("%s: answered, the request is %v, the last byte moved at %v", cells[0], c.Request, c.Moved)
		}
	}
}
