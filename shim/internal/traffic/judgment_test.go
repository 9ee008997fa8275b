package traffic

import (
	"net/netip"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestKeepsInFlight tests the sizes of PINGs of grpc-go and net/http, and of small responses.
func TestKeepsInFlight(t *testing.T) {
	for _, c := range []struct {
		name           string
		received, sent uint64
		whole, half    bool
	}{
		{"no byte", 0, 0, true, false},
		{"PING over cleartext", 17, 17, true, false},
		{"PING over TLS 1.3", 39, 39, true, false},
		{"PING over TLS 1.2", 46, 46, true, false},
		{"three PINGs between two samples", 51, 51, true, false},
		{"largest", maxControlBytes, maxControlBytes, true, false},
		{"too large", maxControlBytes + 1, maxControlBytes + 1, false, false},
		{"PING without its ACK", 17, 0, false, true},
		{"a part of the request", maxControlBytes + 1, 0, false, false},
		{"small response", 0, 17, false, false},
		{"response, then a smaller request", 14, 57, false, false},
	} {
		for _, request := range []RequestState{Idle, InFlight, Tie} {
			l := life{state: tcp.Established, id: 1}
			sock := l.at(s(5))
			answered := tcp.Info{Received: 1000 + c.received, Sent: 1000 + c.sent, Segments: 9, LastReceived: s(2), LastSent: s(1)}
			sock.Info = answered
			conn := conn{received: answered.Received, sent: answered.Sent, judgment: judgment{request: request, in: 1000, out: 1000}}
			got := conn.judge(&sock, Usual{})
			want := Idle
			switch {
			case request == InFlight && (c.whole || c.half), request == Tie && c.whole && c.sent > 0:
				want = request
			}
			if c.half { // the client's PING comes last
				want = Idle
			}
			if got != want {
				t.Errorf("%s, %v: %v, want %v", c.name, request, got, want)
			}
			if c.half && request == InFlight && conn.in != 1000 {
				t.Errorf("%s: the next sample does not see the whole PING", c.name)
			}
		}
	}
}

// TestPartlyRead: a request is being served once the program has read a part of it.
func TestPartlyRead(t *testing.T) {
	for name, c := range map[string]struct {
		judgment
		received uint64
		unread   uint32
		want     bool
	}{
		"a first request, untouched":            {judgment{}, 100, 100, false},
		"a first request, its head read":        {judgment{}, 100_000, 96_000, true},
		"a kept connection, unread at TERM":     {judgment{}, 500, 100, true}, // or a part: not known
		"an idle connection, then a request":    {judgment{in: 400}, 500, 100, false},
		"an idle connection, the head read":     {judgment{in: 400}, 100_500, 96_000, true},
		"a request read, and another behind it": {judgment{request: InFlight, in: 400}, 500, 100, true},
	} {
		conn := conn{judgment: c.judgment}
		sock := tcp.Socket{HasInfo: true, Unread: c.unread, Info: tcp.Info{Received: c.received}}
		if got := conn.partlyRead(&sock); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestUsualIsLearnedLater: what a later connection of the sample tells turns an idle connection
// back into a tie.
func TestUsualIsLearnedLater(t *testing.T) {
	tr := New(Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(0.25)}, start)
	const ms = time.Millisecond
	for now := s(0); now < s(8); now += s(0.25) {
		tr.Begin(start.Add(now))
		a := tcp.Socket{State: tcp.Established, Cookie: 1, Inode: 1, HasInfo: true, Local: netip.MustParseAddrPort("10.0.0.9:80"), Remote: netip.MustParseAddrPort("10.0.0.1:1111")}
		age := now + s(2)
		a.Info = tcp.Info{Received: 4000, Sent: 9000, Segments: 3, SentSegments: 5, PureACKs: 1, PingPong: true, LastReceived: age, LastSent: age, LastAcked: age}
		tr.Observe(&a)
		b := a
		b.Cookie, b.Remote = 2, netip.MustParseAddrPort("10.0.0.1:1112")
		b.Info = tcp.Info{Received: 100, Sent: 200, Segments: 1, SentSegments: 1, PureACKs: 0, LastReceived: age + 10*ms, LastSent: age, LastAcked: age - ms}
		tr.Observe(&b)
		tr.End(Rest{})
		if tr.Verdict().Quiet {
			t.Fatalf("quiet at %v: a tie (by what the second connection tells) is judged idle for good", now)
		}
	}
}

// TestIgnoreProbesTie: a near client's probe on a kept connection is left out, though request
// and response are a tie.
func TestIgnoreProbesTie(t *testing.T) {
	tr := New(Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(0.25), Probes: IgnoreProbes}, start)
	quietAt := time.Duration(-1)
	for now := s(0); now < s(40); now += s(0.25) {
		tr.Begin(start.Add(now))
		n := uint64((now+s(10))/s(1)) + 1
		age := (now + s(10)) % s(1)
		a := tcp.Socket{State: tcp.Established, Cookie: 1, Inode: 1, HasInfo: true, Local: netip.MustParseAddrPort("10.0.0.9:80"), Remote: netip.MustParseAddrPort("10.0.0.1:1111")}
		a.Info = tcp.Info{Received: 77 * n, Sent: 100 * n, Segments: uint32(n), SentSegments: uint32(n), PureACKs: 1, LastReceived: age, LastSent: age, LastAcked: age}
		tr.Observe(&a)
		tr.End(Rest{})
		if tr.Verdict().Quiet && quietAt < 0 {
			quietAt = now
		}
	}
	if quietAt < 0 {
		t.Errorf("never quiet: %+v", tr.Summary())
	}
}

// TestStuckTie: a tie that has been given up was answered, so the program has read nothing of the
// next request.
func TestStuckTie(t *testing.T) {
	tr := New(Config{QuietFor: s(3), MaxSilence: s(60), Poll: s(0.25)}, start)
	at := time.Duration(-1)
	for now := s(0); now < s(58); now += s(0.25) {
		tr.Begin(start.Add(now))
		a := tcp.Socket{State: tcp.Established, Cookie: 1, Inode: 1, HasInfo: true, Local: netip.MustParseAddrPort("10.0.0.9:80"), Remote: netip.MustParseAddrPort("10.0.0.1:1111")}
		age := now + s(60)
		a.Info = tcp.Info{Received: 300, Sent: 300, Segments: 3, SentSegments: 3, PureACKs: 1, PingPong: true, LastReceived: age, LastSent: age, LastAcked: age}
		if now >= s(1) {
			a.Info.Received, a.Info.Segments, a.Info.LastReceived, a.Unread = 400, 4, now-s(1), 100
		}
		tr.Observe(&a)
		tr.End(Rest{})
		if tr.Verdict().Stuck {
			at = now
			break
		}
	}
	if at < 0 {
		t.Error("never stuck")
	}
}
