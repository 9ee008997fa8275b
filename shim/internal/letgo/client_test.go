package letgo

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/world"
)

// TestQuestions: how many connections of a client may be closed at once, and after which time
// without a new connection, by what has become of earlier ones.
func TestQuestions(t *testing.T) {
	for _, cells := range tables.Rows(`
		# what has happened                          | none new for | how many
		                                             | 0.9s         | 0
		                                             | 1s           | 1
		asked                                        | 1s           | 0
		asked left                                   | 1s           | 2
		asked left asked asked left                  | 1s           | 2
		asked left asked asked left left             | 1s           | 4
		asked reset                                  | 1s           | 1
		asked reset asked reset                      | 9s           | 0
		asked left asked asked left left back        | 0.9s         | 0
		asked left asked asked left left back        | 1s           | 1
		asked left back back                         | 1s           | 1
		asked left back asked left back              | 1s           | 0
		asked left back asked left back              | 2s           | 1
		asked left back asked left back asked left back                  | 3.9s | 0
		asked left back asked left back asked left back                  | 4s   | 1
		asked left back asked left back asked left back asked left back  | 4s   | 1
	`) {
		p := &client{}
		ask := func() { p.asked, p.away, p.stay = 1, p.away+1, p.stay+1 }
		for event := range strings.FieldsSeq(cells[0]) {
			k := &Kept{Conn: &ledger.Conn{Shut: true}, from: p}
			switch event {
			case "asked":
				ask()
			case "left":
				k.noteEnd(k.Conn, tcp.TimeWait)
			case "reset":
				k.noteMissing(true)
			case "back":
				p.noteBack()
			}
		}
		noneNewFor, _ := time.ParseDuration(cells[1])
		n := 0
		for ; p.mayBeAsked(1, noneNewFor); n++ {
			ask()
		}
		if want := int(cells[2][0] - '0'); n != want {
			t.Errorf("%q: %d, want %d", cells, n, want)
		}
	}
}

// TestGoodbye: a client of TLS that says goodbye as soon as the server did has left, although the
// kernel resets the connection as if a request had come. So has one that resets the connection.
func TestGoodbye(t *testing.T) {
	for _, c := range []struct {
		bytes, more     int // sent, and received, after the closing
		lingers, isLeft bool
		resets          uint64 // by our kernel
		uncounted       error
	}{
		{-24, 0, false, true, 1, nil}, {-24, 25, false, true, 1, nil}, {0, 0, false, false, 1, nil}, {-24, 0, true, false, 1, nil},
		{-500, 0, false, false, 1, nil}, {-24, 500, false, false, 1, nil}, {-24, 0, true, true, 0, nil}, {0, 0, false, true, 0, nil},
		{0, 0, false, false, 0, io.EOF},
	} {
		w := world.Parse("events talks=-0.9")
		a := askerIn(&w)
		_, tr := w.Until(s(3.9), world.Conditions["any"])
		l := &w.Lives[0]
		l.Moves = slices.DeleteFunc(l.Moves, func(m world.Move) bool { return m.At > s(3.9) })
		a.ask(a.byCookie(1))
		p := a.byCookie(1).from
		if c.lingers {
			l.State, l.Shown.NoInfo = tcp.FinWait2, true
			w.Sample(tr, s(3.92))
			l.Shown.NoInfo = false
		}
		l.Moves = append(l.Moves, world.Move{At: s(3.93), Bytes: c.bytes}, world.Move{At: s(3.93), Bytes: c.more})
		l.Close = s(3.94)
		w.Resets, w.Uncounted = c.resets, c.uncounted
		closed := l.At(l.Close)
		closed.State = tcp.Close
		w.Sample(tr, s(3.95), world.Closed{Socket: closed, At: world.Start.Add(s(3.95))})
		w.Sample(tr, s(3.97))
		if isLeft := p.left == 1; isLeft != c.isLeft || p.left+p.reset != 1 {
			t.Errorf("%+v: %d left, %d were reset", c, p.left, p.reset)
		}
	}
}

// TestSlowToLeave: other connections of a client do not wait for ever for one that the client
// does not close.
func TestSlowToLeave(t *testing.T) {
	w := world.Parse("talks=-0.9; talks=-0.8")
	a := askerIn(&w)
	_, tr := w.Until(s(3.9), world.Conditions["any"])
	a.ask(a.byCookie(1))
	w.Lives[0].State = tcp.FinWait2
	for _, now := range []float64{3.95, 4.8, 4.9} {
		w.Sample(tr, s(now))
		if may := now == 4.9; a.mayClose(a.byCookie(2).from) != may || !a.AwaitsClients() {
			t.Errorf("at %v s another may be closed: %v, want %v", now, !may, may)
		}
	}
}

// TestPort: connections are closed when a port has shown 150 clean cycles, 75 if they are even, and 150
// more for each doubt, each after a connection had been idle for longer than any answer has paused.
func TestPort(t *testing.T) {
	p := &limit{idle: minIdle}
	kinds := map[string]evidence{"clean": clean, "goes-on": goesOn, "doubt": doubt, "nothing": nothing}
	for _, cells := range tables.Rows(`
		# what is shown | after so much idleness | then the port's idleness, and its proof
		clean   | 11ms | 20ms 1
		clean   | 10ms | 20ms 1
		goes-on | 10ms | 20ms 1
		nothing | 99ms | 20ms 1
		goes-on | 11ms | 22ms 0
		clean   | 11ms | 22ms 0
		clean   | 12ms | 22ms 1
		doubt   | 1ms  | 22ms -149
		goes-on | 22ms | 44ms -149
		goes-on | 45ms | 90ms -299
		clean   | 45ms | 90ms -299
		clean   | 46ms | 90ms -298
	`) {
		before, _ := time.ParseDuration(cells[1])
		p.note(0, kinds[cells[0]], before)
		if got := fmt.Sprint(p.idle, p.proof); got != cells[2] {
			t.Errorf("after %q: %s", cells, got)
		}
	}
	for proof, want := range map[float64][2]int{
		EvenCycles - 1: {0, 0}, EvenCycles: {1, 0}, enoughCycles - 1: {1, 0}, enoughCycles: {1, 1},
	} {
		for i, more := range []string{"", " -8.8:-500"} {
			w := world.Parse("open=-9 -9..3.5/0.5:99 -8.9..3.5/0.5:-500" + more)
			a := askerIn(&w)
			w.Until(s(3.4), world.Conditions["any"])
			a.limitsOf(80)[0].proof = proof
			if n := len(a.idle()); n != want[i] {
				t.Errorf("after %v clean cycles %d are idle, want %d (%q)", proof, n, want[i], more)
			}
		}
	}
}

// TestThin: connections with a request a second are asked within 5 s, if all in their life was alike. Those
// of which a request was larger, or had a second answer, are not, nor are those that are young, or whose
// answers end late.
func TestThin(t *testing.T) {
	for _, cells := range tables.Rows(`
		# what a connection does, beside another one that is like it | asked
		open=-70 -70..9/1:99 -69.95..9/1:-300                          | yes
		open=-70 -70..9/1:99 -69.95..9/1:-300 -33.5:99 -33.4:-300      | yes
		open=-70 -70..9/1:99 -69.95..9/1:-300 -33.5:98 -33.4:-300      | no
		open=-70 -70..9/1:99 -69.95..9/1:-300 -33.5:-300               | no
		open=-70 -70..9/1:99 -69.95..9/1:-300 -33.5:99                 | no
		open=-50 -50..9/1:99 -49.95..9/1:-300                          | no
		open=-70 -70..9/1:99 -69.95..9/1:-300 -69.5..9/1:-5            | no
	`) {
		w := world.Parse(cells[0] + "; " + cells[0])
		a := askerIn(&w)
		asked := false
		then := w.Then
		w.Then = func(h *world.Hold, at time.Duration) {
			then(h, at)
			for _, k := range a.ToAsk() {
				asked = asked || a.MayAsk(k, &k.Socket)
			}
		}
		w.Until(s(5), world.Conditions["any"])
		if asked != (cells[1] == "yes") {
			t.Errorf("%q: asked: %v", cells, asked)
		}
	}
}

// TestEven: the segments in one direction are a multiple of those in the other, and would not be without an answer.
func TestEven(t *testing.T) {
	for _, cells := range tables.Rows(`
		# segments received | sent | even
		0  | 0  | false
		4  | 4  | false
		5  | 0  | false
		5  | 3  | false
		18 | 9  | true
		18 | 8  | false
		5  | 5  | true
		9  | 18 | true
		8  | 16 | false
		50 | 49 | false
		50 | 98 | false
		0  | 9  | false
	`) {
		var c ledger.Conn
		_, _ = fmt.Sscan(cells[0]+" "+cells[1], &c.Info.Segments, &c.Info.SentSegments)
		if got := fmt.Sprint(c.IsEven()); got != cells[2] {
			t.Errorf("%s received, %s sent: %s", cells[0], cells[1], got)
		}
	}
}

// TestBusyConnection: most samples of a connection that is hardly ever idle show the end of a cycle.
func TestBusyConnection(t *testing.T) {
	w := world.Parse("open=-9 -9:99 -8:-500 0.505..3.5/0.03:99 0.515..3.5/0.03:-500")
	a := askerIn(&w)
	w.Until(s(3.5), world.Conditions["any"])
	if n := a.limitsOf(80)[0].proof; n < 70 {
		t.Errorf("%v clean cycles of 100, want 70 at least", n)
	}
}

// TestEvidence: what is no request and its answer is a doubt.
func TestEvidence(t *testing.T) {
	for _, cells := range tables.Rows(`
		# what a connection does                  | clean cycles, more in thin traffic, less 150 for each doubt, and the idle time in ms
		requests                                  | 1..5.9/0.2:300,-700                              | 58 20
		requests in two segments, soon after the answer | 1..5.9/0.07:300 1.001..5.9/0.07:300 1.061..5.9/0.07:-700 | 58 20
		answers without content                   | 1..5.9/0.2:300,-64                               | 0 20
		HTTP/1, answers without content           | 1..5.9/0.2:300,-28                               | 58 20
		HTTP/1, answers as short as interim ones  | 1..5.9/0.2:300,-27                               | 0 20
		HTTP/1 and HTTP/2, answers without content | 1..5.9/0.2:300,-28                              | 0 20
		answers that go on after 60 ms            | 1..5.9/0.2:300,-700 1.08..5.98/0.2:-5            | -92 118
		answers that go on later than they pause  | 1..5.9/0.2:300,-700 1.13..5.98/0.2:-5            | -150 218
		an answer that goes on                    | 1..5.9/0.2:300,-700 3.9:-5                       | -126 158
		answers that go on before the next request | 1..5.9/0.03:300 1.006..5.9/0.03:-700 1.016..5.9/0.03:-5 | 75 26
		the same once, to requests in two segments | 1..5.9/0.07:300 1.001..5.9/0.07:300 1.03..5.9/0.07:-700 3.93:-5 | -121 60
		a second answer to one request            | 1..5.9/0.2:300,-700 3.93:-700                    | -128 218
		an upload of parts, each of them answered | 1..5.6/0.2:800,-800 5.8:5,-5 5.95:800            | -92 20
		two requests beside each other            | 1..4/0.2:300,-700 4.2:300 4.3:300 4.4:-700 4.6..5.9/0.2:300,-700 | -96 20
	`) {
		w := world.Parse("open=-9 -9:99 -8:-500 " + cells[1])
		a := askerIn(&w)
		answer := Answer{HTTP1: strings.Contains(cells[0], "HTTP/1"), HTTP2: strings.Contains(cells[0], "HTTP/2")}
		w.Then = func(h *world.Hold, _ time.Duration) { a.updateAndAnswer(h.Latest, h.Sample().NoneNewFor, answer) }
		w.Pause = func() time.Duration { return s(0.025) }
		w.Until(s(6), world.Conditions["any"])
		p := a.limitsOf(80)
		if got := fmt.Sprint(math.Round(p[0].proof), p[0].idle.Milliseconds()); got != cells[2] {
			t.Errorf("%s: %s, want %s", cells[0], got, cells[2])
		}
	}
}

// TestNear: who is far away is not asked, by the rate of requests, nor watched.
func TestNear(t *testing.T) {
	for _, cells := range tables.Rows(`
		rtt=0.0002 | near
		rtt=0.001  | near
		rtt=0.0011 | far
		rtt=4294   | far
		rtt=0.0005 -1..9/0.03:99 -0.98..9/0.03:-300 | far
		rtt=0.0003 -1..9/0.03:99 -0.98..9/0.03:-300 | near
	`) {
		w := world.Parse("talks=-0.9 " + cells[0])
		a := askerIn(&w)
		w.Until(s(3.5), world.Conditions["any"])
		a.limitsOf(80)[0].proof = enoughCycles
		a.limitsOf(80)[0].idle = 0
		isNear := a.byCookie(1).isNear()
		if isNear != (cells[1] == "near") || a.Watching() != isNear {
			t.Errorf("%q: near: %v, watched: %v", cells, isNear, a.Watching())
		}
	}
}

// TestWatching: samples are close when a client may soon be asked, and not for ever.
func TestWatching(t *testing.T) {
	for _, cells := range tables.Rows(`
		0.1 | talks=-0.9                    | no
		0.4 | talks=-0.9                    | yes
		9   | open=-60 -60:500 -59:-500     | no
		12.8 | talks=-0.9                   | yes
		13.2 | talks=-0.9                   | no
		13.2 | talks=-0.9; at=2.4 request   | yes
		3.6 | events talks=-0.9; every=1,0,9 probe | yes
	`) {
		w := world.Parse(cells[1])
		a := askerIn(&w)
		limit, _ := time.ParseDuration(cells[0] + "s")
		w.Until(limit, world.Conditions["any"])
		if a.Watching() != (cells[2] == "yes") {
			t.Errorf("%q: %v", cells, a.Watching())
		}
	}
}

// TestSilence: the silence after the last byte on closed connections is ten mean gaps between
// their requests, and a tracker needs no longer one.
func TestSilence(t *testing.T) {
	for _, c := range []struct {
		requests int
		want     float64
	}{{0, 3}, {1, 3}, {20, 2}, {40, 1}, {1000, 1}} {
		a := New(Config{QuietFor: s(3), CloseIdle: true})
		a.asked.requests, a.asked.lastAt = c.requests, ledger.Trigger+s(4)
		if got := a.Silence(); got != s(c.want) {
			t.Errorf("%d requests in 4 s: %v, want %v s", c.requests, got, c.want)
		}
	}
	for silence, want := range map[float64]float64{1: 6.5, 2: 7.5, 3: 8.5} {
		w := world.Parse(`open=-60 close=5.5 -60:500 -59:-500 0..5/0.1:99 0.05..5/0.1:-300;
			open=-60 -60:500 -59:-500 2:99 2.1:-300`)
		w.Then = func(h *world.Hold, _ time.Duration) {
			for _, c := range h.Latest.Conns {
				c.Shut = c.Shut || c.Cookie == 1
			}
			h.ShutSilence = s(silence)
		}
		if got, _ := w.Until(world.Never, world.Conditions["quiet"]); (got - s(want)).Abs() > s(0.3) {
			t.Errorf("a silence of %v s: quiet after %v, want %v s", silence, got, want)
		}
	}
}
