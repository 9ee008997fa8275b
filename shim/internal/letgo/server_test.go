package letgo

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/world"
)

const ms = time.Millisecond

// http2World has two connections to a port of --goaway, older than the trigger.
type http2World struct {
	*Asker
	ledger *ledger.Ledger
	conns  [2]tcp.Socket
}

func newHTTP2World() *http2World {
	w := &http2World{
		Asker:  New(Config{QuietFor: 4 * time.Second, Goaway: []uint16{80}}),
		ledger: ledger.New(ledger.Config{Start: time.Unix(1, 0), Late: time.Second, MaxTie: 9 * time.Second}),
	}
	for i := range w.conns {
		w.conns[i] = tcp.Socket{
			State: tcp.Established, Inode: 1, Cookie: uint64(i + 1), HasInfo: true,
			Local: netip.MustParseAddrPort("10.0.0.2:80"), Remote: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.7"), uint16(1000+i)),
			Info: tcp.Info{
				Received: 5000, Sent: 9000, Acked: 9000, Segments: 20, SentSegments: 20,
				LastReceived: 90 * ms, LastSent: 70 * ms, LastAcked: 70 * ms,
			},
		}
	}
	return w
}

// sample takes a sample with the connections of which ended has no word.
func (w *http2World) sample(at, noneNewFor time.Duration, ended ...*tcp.Socket) {
	now := time.Unix(1, 0).Add(at)
	w.ledger.Begin(now)
	for i := range w.conns {
		if w.conns[i].State != tcp.Close {
			w.ledger.Observe(&w.conns[i], ledger.Clients)
		}
	}
	for _, s := range ended {
		w.ledger.Closed(s, now, ledger.Clients)
	}
	w.updateAndAnswer(w.ledger.End(ledger.Rest{}), noneNewFor, Answer{HTTP2: true})
}

// send sends GOAWAY on a connection, where that is the moment.
func (w *http2World) send(now *tcp.Socket) bool {
	for _, k := range w.ToAsk() {
		if k.Cookie == now.Cookie && w.MayAsk(k, now) {
			w.NoteAsked(k, now)
			return true
		}
	}
	return false
}

// TestIsHTTP2: the beginning of a SETTINGS frame is the answer of HTTP/2. Fewer bytes may be certain, too.
func TestIsHTTP2(t *testing.T) {
	for _, c := range tables.Rows(`
		# the answer | HTTP/2
		""                                                        | not yet
		"\x00\x00\x00\x04\x00\x00\x00\x00"                        | not yet
		"\x00\x00\x00\x04\x00\x00\x00\x00\x00"                    | yes
		"\x00\x00\x18\x04\x00\x00\x00\x00\x00\x00\x03"            | yes
		"\x00\x01\x02\x04\x00\x00\x00\x00\x00"                    | yes
		"\x00\x00\x07\x04\x00\x00\x00\x00\x00"                    | no
		"\x01\x00\x06\x04\x00\x00\x00\x00\x00"                    | no
		"\x00\x00\x00\x04\x01\x00\x00\x00\x00"                    | no
		"\x00\x00\x06\x04\x00\x00\x00\x00\x01"                    | no
		"\x00\x00\x08\x07\x00\x00\x00\x00\x00"                    | no
		"H"                                                       | no
		"HTTP/1.1 505 HTTP Version Not Supported\r\n"             | no
		"-ERR unknown command 'PRI'\r\n"                          | no
		"ERROR\r\n"                                               | no
		"\x15\x03\x01\x00\x02\x02\x16"                            | no
		"E\x00\x00\x00"                                           | no
	`) {
		answer, err := strconv.Unquote(c[0])
		if err != nil {
			t.Fatal(err)
		}
		is, isCertain := IsHTTP2(answer)
		words := map[[2]bool]string{{true, true}: "yes", {false, true}: "no", {false, false}: "not yet"}
		if got := words[[2]bool{is, isCertain}]; got != c[1] {
			t.Errorf("%q: %s, want %s", answer, got, c[1])
		}
	}
	for answer, want := range map[string][2]bool{
		"": {false, false}, "HTTP": {false, false}, "HTTP/1.": {true, true}, "HTTP/1.1 200 OK": {true, true},
		"HTTP/2": {false, true}, "\x00\x00": {false, true}, "HTTQ": {false, true},
	} {
		if is, isCertain := IsHTTP1(answer); is != want[0] || isCertain != want[1] {
			t.Errorf("HTTP/1: %q: %v, %v", answer, is, isCertain)
		}
	}
}

// TestPreface: the preface of a client and a SETTINGS frame, with sixteen settings.
func TestPreface(t *testing.T) {
	settings, isPreface := strings.CutPrefix(Preface, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	if is, _ := IsHTTP2(settings); !isPreface || !is || len(settings) != 9+int(settings[2]) || settings[2] != 16*6 {
		t.Errorf("%q", Preface)
	}
}

// TestWay: how the clients of a server are asked, by its answer, the flags, and whether the port is named.
func TestWay(t *testing.T) {
	ways := map[way]string{unknown: "not asked", never: "never", closing: "closed", notice: "GOAWAY"}
	for _, c := range tables.Rows(`
		# the answer | named | auto | --close-idle alone
		not yet           | not asked | not asked | not asked
		else              | never  | never  | closed
		HTTP2             | GOAWAY | never  | closed
		HTTP2 HTTP1       | GOAWAY | never  | closed
		HTTP2 Alone       | GOAWAY | GOAWAY | GOAWAY
		HTTP2 Relay       | never  | never  | never
		HTTP2 Alone Relay | never  | never  | never
	`) {
		is := func(word string) bool { return strings.Contains(c[0], word) }
		answer := Answer{HTTP2: is("HTTP2"), HTTP1: is("HTTP1"), Alone: is("Alone"), Relay: is("Relay")}
		for i, cfg := range []Config{
			{Goaway: []uint16{80}}, {Goaway: []uint16{Auto}}, {Goaway: []uint16{Auto}, CloseIdle: true},
		} {
			a := New(cfg)
			y := a.serverOf(&ledger.Conn{Socket: tcp.Socket{Local: netip.MustParseAddrPort("10.0.0.2:80")}})
			if unasked := a.Unasked(); len(unasked) != 1 || unasked[0] != y || len(a.Unasked()) > 0 {
				t.Errorf("%+v: not asked once", cfg)
			}
			if !is("not yet") {
				a.NoteAnswer(y, answer)
			}
			if got := ways[y.way]; got != c[i+1] {
				t.Errorf("%s, %+v: %s, want %s", c[0], cfg, got, c[i+1])
			}
			if isMoved := y.Moves(); isMoved != (c[i+1] == "GOAWAY") || len(a.Figures().Answered) != map[bool]int{true: 0, false: 1}[is("not yet")] {
				t.Errorf("%s, %+v: moved: %v, answers: %v", c[0], cfg, isMoved, a.Figures().Answered)
			}
		}
	}
}

// TestPauses: where the answers of a server pause, GOAWAY waits for a silence of twice that time. A server
// that sleeps in the midst of a frame looks like that. What an answer to another request may be is no pause.
func TestPauses(t *testing.T) {
	for _, c := range tables.Rows(`
		# what has happened each 300 ms | the longest and the shortest that is remembered
		300,-900                                          | 0 0
		300 .02:-900                                      | 0 0
		300,-40 .1:-900                                   | 100 100
		300,-40 .1:-9000,26                               | 100 100
		300 .02:-40 .12:-9000,26                          | 100 100
		300 .02:-40 .12:-900 .14:17,-17                    | 100 100
		300,-13 .1:-900                                   | 0 0
		300,-30 .1:-900                                   | 0 0
		300 .02:-900 .1:-13                               | 0 0
		300 .02:-26 .12:-900 .14:13                       | 0 0
		300,-40 .1:300,-900                               | 0 0
		26 .05:-900,26 .1:-900,26                         | 0 0
		39,-40 .1:-900                                    | 100 100
		39 .02:-900                                       | 0 0
		300 .02:300 .1:-900 .2:-900                       | 100 0
	`) {
		w := world.Parse("open=-9 -9:99 -8:-500")
		for i := range 12 {
			for event := range strings.FieldsSeq(c[0]) {
				at, moves, found := strings.Cut(event, ":")
				if !found {
					at, moves = "0", event
				}
				after, _ := strconv.ParseFloat(at, 64)
				for bytes := range strings.SplitSeq(moves, ",") {
					n, _ := strconv.Atoi(bytes)
					w.Lives[0].Moves = append(w.Lives[0].Moves, world.Move{At: s(0.3*float64(i) + after), Bytes: n})
				}
			}
		}
		a := New(Config{QuietFor: s(4), Goaway: []uint16{80}})
		w.Then = func(h *world.Hold, _ time.Duration) {
			a.updateAndAnswer(h.Latest, h.NoneNewFor, Answer{HTTP2: true})
		}
		w.Pause = func() time.Duration { return s(0.025) }
		longest, shortest := time.Duration(0), time.Hour
		then := w.Then
		w.Then = func(h *world.Hold, at time.Duration) {
			then(h, at)
			if k := a.byCookie(1); k != nil && at > s(2.9) {
				longest, shortest = max(longest, k.pause), min(shortest, k.pause)
			}
		}
		w.Until(s(3.5), world.Conditions["any"])
		wants := strings.Fields(c[1])
		for i, got := range []time.Duration{longest, shortest} {
			if want, _ := strconv.ParseFloat(wants[i], 64); got.Seconds() < 0.7e-3*want || got.Seconds() > 1.3e-3*want {
				t.Errorf("%s: %v to %v, want %s ms", c[0], shortest, longest, c[1])
			}
		}
	}
}

// TestMoment: GOAWAY is sent between two frames, once nothing new has come for long enough.
func TestMoment(t *testing.T) {
	for _, c := range tables.Rows(`
		# name | nothing new for | what else is so | sent
		nothing is on its way                    | 1s    |             | yes
		a connection has come lately             | 990ms |             | no
		the server reads                         | 1s    | unread      | no
		a frame is on its way                    | 1s    | unsent      | no
		the server has just sent                 | 1s    | sent        | no
		and has never been silent                | 2s    | sent        | yes
		and its answers pause                    | 2s    | sent pauses | no
		the server was silent as in its answers  | 1s    | pauses      | no
		and for twice as long                    | 1s    | pauses long | yes
		the client has left                      | 1s    | left        | no
		the client came back once                | 1s    | back        | no
		the program has not accepted it          | 1s    | queued      | no
		nothing of it is known                   | 1s    | no info     | no
	`) {
		is := func(word string) bool { return strings.Contains(c[2], word) }
		w := newHTTP2World()
		now := &w.conns[0]
		switch {
		case is("queued"):
			now.Inode = 0
		case is("no info"):
			now.HasInfo = false
		}
		w.sample(2*time.Second, 0)
		noneNewFor, _ := time.ParseDuration(c[1])
		w.sample(3*time.Second, noneNewFor)
		if is("pauses") {
			w.kept[1].pause = 40 * ms
		}
		now.Info.LastSent = 79 * ms
		switch {
		case is("unread"):
			now.Unread = 1
		case is("unsent"):
			now.Unsent = 1
		case is("sent"):
			now.Info.LastSent = 4 * ms
		case is("long"):
			now.Info.LastSent = 80 * ms
		case is("left"):
			now.State = tcp.CloseWait
		case is("back"):
			w.clientAt(now.Remote.Addr()).back = 2
		}
		if got := w.send(now); got != (c[3] == "yes") {
			t.Errorf("%s: sent: %v", c[0], got)
		}
	}
}

// TestCameBack: a client that connects again is asked again, later.
func TestCameBack(t *testing.T) {
	w := newHTTP2World()
	w.sample(2*time.Second, 2*time.Second)
	if !w.send(&w.conns[0]) || !w.send(&w.conns[1]) || w.send(&w.conns[0]) {
		t.Fatal("GOAWAY is not sent on each connection once")
	}
	w.conns[0].Cookie, w.conns[0].Remote = 3, netip.MustParseAddrPort("10.0.0.7:1003")
	w.sample(3*time.Second, 0)
	w.sample(3900*ms, 900*ms)
	if w.send(&w.conns[0]) {
		t.Error("asked again after less than a second")
	}
	w.sample(4*time.Second, time.Second)
	if !w.Watching() || !w.send(&w.conns[0]) {
		t.Error("not asked again after a second")
	}
	if got := w.Figures(); got.Notified != 3 || got.CameBack != 1 || got.Closed+got.InPod > 0 {
		t.Errorf("%+v, want 3 and 1", got)
	}
	w.sample(10*time.Second, 5*time.Second)
	if w.Watching() {
		t.Error("samples are frequent, and nobody is to be asked")
	}
}

// TestMissed: a connection that one sample has missed may be sent GOAWAY, and only once.
func TestMissed(t *testing.T) {
	w := newHTTP2World()
	w.sample(2*time.Second, 2*time.Second)
	if !w.send(&w.conns[0]) {
		t.Fatal("nothing is sent")
	}
	conns := w.conns
	w.conns[0].State, w.conns[1].State = tcp.Close, tcp.Close
	w.sample(2250*ms, 2250*ms)
	w.conns = conns
	w.sample(2500*ms, 2500*ms)
	if w.send(&w.conns[0]) || !w.send(&w.conns[1]) {
		t.Error("not sent on the connection on which it was not")
	}
}
