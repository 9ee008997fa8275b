package traffic

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestCause: the summary names what the condition waited for.
func TestCause(t *testing.T) {
	addr := netip.MustParseAddr
	from := func(peer string, l life) life {
		l.peer = peer
		return l
	}
	busy := func(peer string) []life {
		list := every(s(0.1), s(-5), s(30), request)
		for i := range list {
			list[i].peer = peer
		}
		return list
	}
	pool := func(connections int, until float64) (list []life) { // a request each 0.1 s in all
		for i := range connections {
			l := from(fmt.Sprintf("10.0.1.%d", i), answered(-20))
			for at := float64(i)/10 - 9; at < until; at += float64(connections) / 10 {
				l.moves = append(l.moves, move{s(at), 100 + len(l.moves)}, move{s(at + 0.02), -200})
			}
			list = append(list, l)
		}
		return list
	}
	slow := func(peer string, at, wait float64) life {
		l := from(peer, answered(-20))
		l.moves = append(l.moves, move{s(at), 99}, move{s(at + wait), -200})
		return l
	}
	lone := func(at float64) life { return from("10.0.0.1", every(s(1), s(at), s(at)+1, probing(1)[0])[0]) }
	full := func(time.Duration) uint32 { return 5 }
	for name, c := range map[string]struct {
		world
		cond  func(Verdict) bool
		limit float64
		want  Cause // At is a number of seconds from the trigger
		at    float64
	}{
		"nothing":                          {world{lives: []life{answered(-5)}}, quiet, 60, Cause{}, 0},
		"new connections":                  {world{lives: busy("10.0.0.7"), events: true}, quiet, 19, Cause{Kind: NewConnections, Peer: addr("10.0.0.7"), Port: 80, Connections: 28}, 18.75},
		"new connections, by count":        {world{lives: busy("10.0.0.7"), events: true, Config: Config{Until: stop.Settled}}, settled, 19, Cause{Kind: NewConnections, Peer: addr("10.0.0.7"), Port: 80, Connections: 28}, 18.75},
		"a slow request":                   {world{lives: []life{from("10.0.0.8", slowRequest), answered(-1)}}, quiet, 60, Cause{Kind: Requests, Peer: addr("10.0.0.8"), Port: 80, Connections: 1}, 9},
		"a slow request to the end":        {world{lives: []life{from("10.0.0.8", slowRequest), answered(-1)}}, quiet, 8, Cause{Kind: Requests, Peer: addr("10.0.0.8"), Port: 80, Connections: 1}, 7.75},
		"a stream":                         {world{lives: []life{from("10.0.0.9", webSocket(60))}, Config: Config{Probes: CountProbes}}, quiet, 19, Cause{Kind: Probe, Peer: addr("10.0.0.9"), Port: 80, Period: time.Second, Received: 5}, 18},
		"a stream that is never answered":  {world{lives: []life{from("10.0.0.9", oneWay(-9, 1.1, 60))}}, quiet, 19, Cause{Kind: Bytes, Peer: addr("10.0.0.9"), Port: 80, Unanswered: true}, 18.5},
		"a heartbeat":                      {world{lives: []life{from("10.0.0.9", oneWay(-9, 6, 60))}}, quiet, 19, Cause{Kind: Requests, Peer: addr("10.0.0.9"), Port: 80, Connections: 1, Unanswered: true}, 18.75},
		"a probe":                          {world{lives: probing(1), events: true, Config: Config{Probes: CountProbes}}, quiet, 19, Cause{Kind: Probe, Peer: addr("10.0.0.1"), Port: 80, Period: time.Second, Received: 77}, 18},
		"a probe, until settled":           {world{lives: probing(1), events: true, Config: Config{Probes: CountProbes, Until: stop.Settled}}, settled, 19, Cause{Kind: Probe, Peer: addr("10.0.0.1"), Port: 80, Period: time.Second, Received: 77}, 18},
		"requests beside a probe":          {world{lives: append(probing(1), busy("10.0.0.7")...), events: true}, quiet, 19, Cause{Kind: NewConnections, Peer: addr("10.0.0.7"), Port: 80, Connections: 31}, 18.75},
		"an accept queue":                  {world{queue: full, lives: []life{{port: 80, peer: "10.0.0.7", open: s(-9), accepted: -1, unread: 5, moves: []move{{s(-9), 5}}}}, Config: Config{MaxSilence: s(5)}}, quiet, 8, Cause{Kind: AcceptQueue, Peer: addr("10.0.0.7"), Port: 80, Connections: 5}, 7.75},
		"a pool":                           {world{lives: pool(12, 30)}, quiet, 19, Cause{Kind: Bytes, Peer: addr("10.0.1.1"), Port: 80}, 18.72},
		"a pool, and a probe now and then": {world{lives: append(pool(12, 30), every(s(10), s(6.5), s(19), probing(1)[0])...), events: true}, quiet, 18, Cause{Kind: Bytes, Peer: addr("10.0.1.3"), Port: 80}, 17.72},
		"a pool, and a slow request":       {world{lives: append(pool(12, 30), slow("10.0.0.8", 12, 20))}, quiet, 19, Cause{Kind: Requests, Peer: addr("10.0.0.8"), Port: 80, Connections: 1}, 18.75},
		"a pool, and an older request":     {world{lives: append(pool(12, 30), slow("10.0.0.8", -5, 60))}, quiet, 19, Cause{Kind: Requests, Peer: addr("10.0.0.8"), Port: 80, Connections: 1}, 18.75},
		"a pool that lets go, then a slow": {world{lives: append(pool(12, 5), slow("10.0.0.8", 4.9, 9))}, quiet, 60, Cause{Kind: Requests, Peer: addr("10.0.0.8"), Port: 80, Connections: 1}, 13.9},
		"a slow request, then fast ones":   {world{lives: []life{slowThenFast("10.0.0.8")}}, quiet, 19, Cause{Kind: Bytes, Peer: addr("10.0.0.8"), Port: 80}, 18.5},
		"a probe in the silence":           {world{lives: append(pool(12, 5), lone(7)), events: true}, quiet, 60, Cause{Kind: NewConnections, Peer: addr("10.0.0.1"), Port: 80, Connections: 1}, 7},
		"an open connection":               {world{lives: []life{from("10.0.0.7", answered(-5))}, Config: Config{Until: stop.Drained}}, drained, 19, Cause{Kind: OpenConnections, Peer: addr("10.0.0.7"), Connections: 1}, 18.75},
	} {
		t.Run(name, func(t *testing.T) {
			_, tr := c.until(s(c.limit), c.cond)
			got := tr.Summary().Cause
			at := got.At.Sub(start)
			got.At = time.Time{}
			if got != c.want || c.want.Kind != NoCause && (at < s(c.at-0.3) || at > s(c.at+0.3)) {
				t.Errorf("%+v at %v, want %+v at %v s", got, at, c.want, c.at)
			}
		})
	}
}

// slowThenFast returns a connection with a request that is answered after 5 s, and then
// with a request every half second.
func slowThenFast(peer string) life {
	l := answered(-20)
	l.peer = peer
	l.moves = append(l.moves, move{s(-1), 99}, move{s(4), -200})
	for at := 4.5; at < 30; at += 0.5 {
		l.moves = append(l.moves, move{s(at), 100 + len(l.moves)}, move{s(at + 0.02), -200})
	}
	return l
}

// TestLeftOut: the summary counts what is no traffic.
func TestLeftOut(t *testing.T) {
	w := world{events: true, Config: Config{MaxSilence: s(5)}, lives: []life{
		{open: s(1), state: tcp.SynRecv}, {open: s(1), state: tcp.SynRecv},
		{open: s(1), close: s(1.1)}, {open: s(1)}, {open: s(-1)},
		{open: s(-13), moves: answered(-13).moves, vanished: s(-12)},
		{open: s(-9), peer: "10.0.0.7", moves: []move{{s(-9), 100}}},
	}}
	_, tr := w.until(s(9), func(Verdict) bool { return false })
	want := LeftOut{HalfOpen: 2, Bare: 2, Gone: 1, GivenUp: 1}
	if r := tr.Summary(); r.LeftOut != want || r.InFlight != 0 || r.Accepted != 2 {
		t.Errorf("%+v", r)
	}
}

// TestTie: a request that may have been answered holds until it has been silent
// for 12 s, before the trigger included. Outside of ping-pong mode the kernel has acknowledged
// the last bytes by themselves, as those of a request that waits: then for MaxSilence.
func TestTie(t *testing.T) {
	for _, c := range []struct {
		silent, want float64
		pingPong     bool
	}{{40, 0, true}, {20, 0, true}, {2, 10, true}, {2, 30, false}, {20, 30, false}} {
		tr := New(Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(0.25)}, start)
		held := 0.0
		for now := 0.0; now < 60; now++ {
			age := s(c.silent + now)
			tr.Begin(start.Add(s(now)))
			tr.Observe(&tcp.Socket{State: tcp.Established, Remote: netip.MustParseAddrPort("10.0.0.7:80"), Cookie: 1, HasInfo: true, Inode: 1,
				Info: tcp.Info{LastSent: age, LastReceived: age, LastAcked: age, Received: 8, Sent: 4, Segments: 2, PureACKs: 2, PingPong: c.pingPong}})
			tr.End(Rest{})
			if tr.Summary().InFlight > 0 {
				held = now + 1
			}
		}
		if held != c.want {
			t.Errorf("%+v: in flight for %v s", c, held)
		}
	}
}

// TestCauseMissed: activity that only the kernel has counted is a cause too.
func TestCauseMissed(t *testing.T) {
	for name, rest := range map[string]func(now time.Duration) Rest{
		"missed":   func(now time.Duration) Rest { return Rest{MissedAt: start.Add(now)} },
		"accepted": func(now time.Duration) Rest { return Rest{Accepted: 1 + int(now/s(0.25))} },
		"segments": func(now time.Duration) Rest { return Rest{Segments: true} },
	} {
		tr := New(Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(0.25)}, start)
		l := withoutInfo(life{id: 1, open: s(-9)})
		for now := s(0.1); now < s(20); now += s(0.25) {
			tr.Begin(start.Add(now))
			sock := l.at(now)
			tr.Observe(&sock)
			tr.End(rest(now))
		}
		c := tr.Summary().Cause
		if c.Kind == NoCause || c.At.Sub(start) < s(19) {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// TestCauseUpload: an upload is no stream that is never answered.
func TestCauseUpload(t *testing.T) {
	for name, end := range map[string]float64{"new": 12.5, "older": 19} {
		up := life{open: s(11)}
		for at := 11.0; at < 30; at += 0.1 {
			up.moves = append(up.moves, move{s(at), 50_000})
		}
		w := world{lives: []life{up, answered(-5)}, events: true}
		_, tr := w.until(s(end), func(Verdict) bool { return false })
		if c := tr.Summary().Cause; c.Unanswered {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// TestLastOther: connections of a probe's kind that came before the probe are no probes.
func TestLastOther(t *testing.T) {
	var lives []life
	for _, at := range []float64{0.2, 0.5, 1.4, 2.2, 3.9, 4.1, 5.3, 6.8} {
		lives = append(lives, everyProbe(100, at, at+1)...)
	}
	lives = append(lives, everyProbe(1, 8, 14)...)
	w := world{lives: lives, events: true}
	_, tr := w.until(s(13.5), func(Verdict) bool { return false })
	if got := tr.Summary().LastOther.Sub(start); got < s(6.8) {
		t.Errorf("LastOther %v: irregular connections of the same key, until 6.8 s, are forgotten", got)
	}
}
