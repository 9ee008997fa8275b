package traffic

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
)

// never is the limit of simulated time: a condition is not met before.
const never = 60 * time.Second

// conditions are the conditions of the tables in testdata.
var conditions = map[string]func(Verdict) bool{
	"settled": func(v Verdict) bool { return v.Settled },
	"quiet":   func(v Verdict) bool { return v.Quiet },
	"drained": func(v Verdict) bool { return v.Drained },
	"stuck":   func(v Verdict) bool { return v.Stuck },
	"kept":    func(v Verdict) bool { return v.Kept },
	"any":     func(Verdict) bool { return false },
}

// row is a row of a table in testdata: a name, a condition and a time, a world, and what else
// the table has.
type row struct {
	name  string
	cond  func(Verdict) bool
	at    time.Duration
	world world
	want  string
}

func readRows(t *testing.T, file string) (rows []row) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, cells := range script.Rows(string(text)) {
		cond, at, _ := strings.Cut(cells[1], " ")
		r := row{cells[0], conditions[cond], never, parseWorld(cells[2]), cells[len(cells)-1]}
		if at != "never" {
			r.at = s(number(strings.TrimSpace(at)))
		}
		rows = append(rows, r)
	}
	return rows
}

func number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// macros stand for other words; $ is the macro's value.
var macros = map[string]string{
	"answered":  "0:100 0.01:-200",                                                         // a request and its response
	"request":   "close=0.05 0:100 0.01:-200",                                              // the same, on a connection of its own
	"probe":     "close=0.004 0.001:77 0.002:-100",                                         // that of a health check
	"slow":      "open=-5 -5:100 -4:-200 -1:100 9:-200",                                    // a request that takes 10 s
	"done":      "tie pingpong acks=$ open=-9 -9:4 -9:-2 -5:4 -5:-2",                       // a tie, with so many pure ACKs
	"waits":     "tie pingpong acks=$ open=-9 -9:4 -5:4 -5:-4",                             // the same, with a segment less sent
	"waiting":   "open=-3 accepted=-1 unread=100 -3:100",                                   // a request in the accept queue
	"talks":     "open=-60 -60:500 -59:-500 $..50/1:100 $..50/1:100 $..50/1:-200",          // a request and its response each second
	"busy":      "unsent=5 open=-60 -60:500 -59:-500 $..50/1:100 $..50/1:100 $..50/1:-200", // the same, not acknowledged
	"websocket": "open=-100 -100:100 -99:-100 -10..$/1:5 -9.999..$.5/1:-5",                 // a message and a response each second
}

var states = map[string]tcp.State{
	"SYN_RECV": tcp.SynRecv, "FIN_WAIT1": tcp.FinWait1, "FIN_WAIT2": tcp.FinWait2,
	"TIME_WAIT": tcp.TimeWait, "CLOSE_WAIT": tcp.CloseWait,
}

// parseWorld reads a world: connections, separated by semicolons, of which each has words. A word
// is a macro, a field of the connection or of the world, or a move, TIME:BYTES or
// FROM..TO/PERIOD:BYTES. With at=TIME or every=PERIOD,FROM,TO all times are relative to the
// connection's own.
func parseWorld(text string) (w world) {
	for part := range strings.SplitSeq(text, ";") {
		var words []string
		for word := range strings.FieldsSeq(part) {
			name, value, _ := strings.Cut(word, "=")
			if macro := macros[name]; macro != "" {
				words = append(words, strings.Fields(strings.ReplaceAll(macro, "$", value))...)
			} else {
				words = append(words, word)
			}
		}
		w.lives = append(w.lives, w.parseLives(words)...)
	}
	return w
}

// parseLives reads connections, and sets fields of the world.
func (w *world) parseLives(words []string) (list []life) {
	var l life
	var at []float64 // when the connection comes: a period, the first time and the end
	clients, alternating := 1, false
	durations := map[string]*time.Duration{
		"open": &l.open, "accepted": &l.accepted, "close": &l.close, "vanished": &l.vanished, "unread-at": &l.unreadAt,
		"quiet-for": &w.QuietFor, "max-silence": &w.MaxSilence, "poll": &w.Poll, "source": &w.source,
		"late": &w.late, "lag": &w.lag,
	}
	sizes := map[string]*uint32{"unread": &l.unread, "unsent": &l.unsent, "not-sent": &l.notSent, "acks": &l.pureACKs}
	flags := map[string]*bool{
		"noinfo": &l.shown.withoutInfo, "unreported": &l.shown.unreported, "blurred": &l.shown.blurred,
		"tie": &l.tie, "pingpong": &l.pingPong, "alternating": &alternating,
		"events": &w.events, "segments": &w.segments,
	}
	for _, word := range words {
		name, value, hasValue := strings.Cut(word, "=")
		var n []float64
		if hasValue && value[0] <= '9' && strings.Count(value, ".") < 3 && !strings.Contains(value, ":") {
			for field := range strings.SplitSeq(value, ",") {
				n = append(n, number(field))
			}
		}
		switch {
		case durations[name] != nil:
			*durations[name] = s(n[0])
			continue
		case sizes[name] != nil:
			*sizes[name] = uint32(n[0])
			continue
		case flags[name] != nil:
			*flags[name] = true
			continue
		}
		switch name {
		case "peer":
			l.peer = value
		case "port":
			l.port = uint16(n[0])
		case "state":
			l.state = states[value]
		case "rule":
			w.Probes = map[string]ProbeRule{"ignore": IgnoreProbes, "count": CountProbes}[value]
		case "until":
			w.Until = stop.Reason(value)
		case "close-idle":
			w.CloseIdle = true
		case "ignore-port":
			w.IgnorePorts = []uint16{uint16(n[0])}
		case "ignore-peer":
			w.IgnorePeers = []netip.Prefix{netip.MustParsePrefix(value)}
		case "queue":
			w.waiting, w.queued = int(n[0]), span{0, s(n[1])}
		case "incomplete":
			w.incomplete = span{s(n[0]), s(n[1])}
		case "missed":
			w.missed = span{s(n[0]), s(n[1])}
		case "counted":
			w.counted = append(w.counted, parseMoves(value)...)
		case "opened":
			w.opened = append(w.opened, parseMoves(value)...)
		case "pool":
			list = pool(int(n[0]), n[1])
		case "differing":
			list = differing(int(n[0]), n[1])
		case "clients":
			clients = int(n[0])
		case "at":
			at = []float64{1, n[0], n[0] + 1}
		case "every":
			at = n
		default:
			l.moves = append(l.moves, parseMoves(word)...)
		}
	}
	slices.SortStableFunc(l.moves, func(a, b move) int { return int(a.at - b.at) })
	switch {
	case at != nil:
		for i := range clients {
			if clients > 1 {
				l.peer = fmt.Sprintf("10.0.1.%d", i)
			}
			list = append(list, every(s(at[0]), s(at[1]+at[0]*float64(i)/float64(clients)), s(at[2]), l)...)
		}
	case l.open != 0 || l.moves != nil:
		list = append(list, l)
	}
	if alternating {
		alternate(list)
	}
	return list
}

// parseMoves reads TIME:BYTES or FROM..TO/PERIOD:BYTES.
func parseMoves(word string) (moves []move) {
	when, bytes, _ := strings.Cut(word, ":")
	from, rest, repeated := strings.Cut(when, "..")
	to, period, _ := strings.Cut(rest, "/")
	first := move{s(number(from)), int(number(bytes))}
	if !repeated {
		return []move{first}
	}
	for m := first; m.at <= s(number(to)); m.at += s(number(period)) {
		moves = append(moves, m)
	}
	return moves
}

// every returns a connection for each period of a time.
func every(period, from, to time.Duration, l life) (list []life) {
	for at := from; at < to; at += period {
		next := l
		next.open += at
		if l.close != 0 {
			next.close += at
		}
		next.moves = nil
		for _, m := range l.moves {
			next.moves = append(next.moves, move{at + m.at, m.bytes})
		}
		list = append(list, next)
	}
	return list
}

// pool returns connections of two peers, older than the trigger, with a request of varying
// size and a response every 0.7 s or so up to a time in seconds.
func pool(n int, until float64) (list []life) {
	for i := range n {
		l := life{peer: fmt.Sprintf("10.0.3.%d", i%2), open: s(-60), moves: []move{{s(-60), 500}, {s(-59), -500}}}
		size := 100 + i
		for at := -5 + 0.1*float64(i); at < until; at += 0.6 + float64(size%7)/20 {
			l.moves = append(l.moves, move{s(at), size}, move{s(at + 0.005), -300})
			size += 13
		}
		list = append(list, l)
	}
	return list
}

// differing returns short connections, in so many seconds, that all differ in the bytes
// received or in the peer.
func differing(n int, seconds float64) (list []life) {
	for i := range n {
		at := seconds * float64(i) / float64(n)
		list = append(list, life{
			peer: fmt.Sprintf("10.0.2.%d", i%250), open: s(at), close: s(at + 0.02),
			moves: []move{{s(at + 0.002), 100 + i/250}, {s(at + 0.01), -200}},
		})
	}
	return list
}

// alternate gives every other connection 25 more bytes that the program does not read, as a
// close_notify of TLS may arrive, and the others a byte less.
func alternate(list []life) {
	for i := range list {
		if i%2 == 0 {
			list[i].moves = append(list[i].moves, move{list[i].close, 25})
			list[i].unread = 25
		} else {
			list[i].moves[0].bytes--
		}
	}
}

// TestVerdicts: each condition is met in time, and not before.
func TestVerdicts(t *testing.T) {
	for _, r := range readRows(t, "testdata/verdicts.txt") {
		t.Run(r.name, func(t *testing.T) {
			if got, _ := r.world.until(never, r.cond); got < r.at || got > r.at+2*r.world.Poll {
				t.Errorf("after %v, want %v", got, r.at)
			}
		})
	}
}

// TestCause: the summary names what the condition waited for.
func TestCause(t *testing.T) {
	for _, r := range readRows(t, "testdata/causes.txt") {
		t.Run(r.name, func(t *testing.T) {
			_, tracker := r.world.until(r.at, r.cond)
			c := tracker.Summary().Cause
			want, at, _ := strings.Cut(r.want, " at ")
			if got := describe(c, tracker.Verdict()); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if at != "" && (c.At.Sub(start)-s(number(at))).Abs() > s(0.3) {
				t.Errorf("at %v, want %s s", c.At.Sub(start), at)
			}
		})
	}
}

// TestSummary: the figures for the report.
func TestSummary(t *testing.T) {
	for _, r := range readRows(t, "testdata/summaries.txt") {
		t.Run(r.name, func(t *testing.T) {
			_, tracker := r.world.until(r.at, r.cond)
			got := figures(tracker)
			for word := range strings.FieldsSeq(r.want) {
				if !slices.Contains(got, word) {
					t.Errorf("%s; want %s", got, word)
				}
			}
		})
	}
}

// figures returns a summary in words, with times in seconds from the trigger.
func figures(tracker *Tracker) []string {
	r := tracker.Summary()
	after := func(at time.Time) float64 { return max(at.Sub(start).Seconds(), 0) }
	text := fmt.Sprintf("accepted=%d more=%v open=%d in-flight=%d in-use=%d at-risk=%d",
		r.Accepted, r.More, r.Open, r.InFlight, r.InUse, tracker.Verdict().AtRisk)
	text += fmt.Sprintf(" last-new=%v last-other=%v %+v seconds=", after(r.LastNew), after(r.LastOther), r.LeftOut)
	text = strings.NewReplacer("{", "", "}", "").Replace(text) + strings.ReplaceAll(fmt.Sprint(r.PerSecond), " ", ",")
	var ports []string
	for _, p := range r.Patterns {
		ports = append(ports, fmt.Sprint(p.Port))
		text += fmt.Sprintf(" %v,%d,%v,%d", p.Peer, p.Received, p.Period, p.Count)
	}
	return append(strings.Fields(text), "patterns:"+strings.Join(ports, ","))
}

// describe returns a cause in words, without its time.
func describe(c Cause, v Verdict) string {
	text := [...]string{"none", "new", "bytes", "requests", "probe", "queue", "open"}[c.Kind]
	if c.Peer.IsValid() {
		text += " " + c.Peer.String()
	}
	if c.Port != 0 {
		text += fmt.Sprintf(":%d", c.Port)
	}
	if c.Connections != 0 {
		text += fmt.Sprintf(" n=%d", c.Connections)
	}
	if c.Period != 0 {
		text += fmt.Sprintf(" period=%v bytes=%d", c.Period, c.Received)
	}
	if c.Unanswered {
		text += " unanswered"
	}
	if v.Active {
		text += " active"
	}
	return text
}

// TestClosable: as many connections may be closed, or none are watched yet.
func TestClosable(t *testing.T) {
	for _, r := range readRows(t, "testdata/closable.txt") {
		t.Run(r.name, func(t *testing.T) {
			r.world.CloseIdle = true
			_, tr := r.world.until(r.at, r.cond)
			idle, watched := tr.Closable()
			got := fmt.Sprint(len(idle))
			if !watched {
				got = "unwatched"
			}
			if got != r.want {
				t.Errorf("%s, want %s", got, r.want)
			}
		})
	}
}

// The first to be closed is the one in the middle by idle time. A closed connection is not
// closed again, and a new connection of its peer came back.
func TestNoteClosed(t *testing.T) {
	world := parseWorld(`close-idle
		talks=-0.9; talks=-0.8; talks=-0.7; talks=-0.6; talks=-0.5 peer=10.0.0.7;
		open=3.5 3.5:100 3.51:-100; open=3.5 peer=10.0.0.7 3.5:100 3.51:-100; open=3.5 peer=10.0.0.7 3.5:100 3.51:-100`)
	_, tr := world.until(s(3.4), conditions["any"]) // last used at 3.1, 3.2, 2.3, 2.4 and 2.5, the median
	idle, _ := tr.Closable()
	if len(idle) != 5 {
		t.Fatalf("%d idle, want 5", len(idle))
	}
	first := &idle[0]
	if first.conn.peer.String() != "10.0.0.7" {
		t.Errorf("the first has been idle for %v", first.idleFor)
	}
	now := world.lives[4].at(s(3.45))
	if !first.IsIdle(&now) {
		t.Errorf("not idle: %+v", now)
	}
	for name, change := range map[string]func(*tcp.Socket){
		"received": func(s *tcp.Socket) { s.Info.Received++ },
		"sent":     func(s *tcp.Socket) { s.Info.Sent++ },
		"unread":   func(s *tcp.Socket) { s.Unread++ },
		"unsent":   func(s *tcp.Socket) { s.Unsent++ },
		"closing":  func(s *tcp.Socket) { s.State = tcp.CloseWait },
		"no info":  func(s *tcp.Socket) { s.HasInfo = false },
	} {
		changed := now
		change(&changed)
		if first.IsIdle(&changed) {
			t.Errorf("%s: idle", name)
		}
	}
	tr.NoteClosed(first)
	world.sample(tr, s(3.45))
	if idle, _ := tr.Closable(); len(idle) != 4 {
		t.Errorf("then %d idle, want 4", len(idle))
	}
	world.sample(tr, s(3.6))
	if idle, _ := tr.Closable(); idle != nil {
		t.Error("connections may be closed although new ones come")
	}
	if sum := tr.Summary(); sum.ClosedIdle != 1 || sum.CameBack != 1 {
		t.Errorf("%d closed, of which %d came back; want 1 and 1", sum.ClosedIdle, sum.CameBack)
	}
}

// A server may keep connections whose clients seem to have left. Of those that are closed, one
// more may be open than the server has closed. One with a request that the server does not
// read holds for a second, as of a hung server.
func TestServerKeepsClosed(t *testing.T) {
	world := parseWorld("close-idle talks=-0.9; talks=-0.8 peer=10.0.0.7; talks=-0.7")
	_, tr := world.until(s(3.4), conditions["any"])
	mayClose := func(now float64, want bool) {
		t.Helper()
		world.sample(tr, s(now))
		if idle, _ := tr.Closable(); tr.MayClose(&idle[0]) != want {
			t.Errorf("at %v s another may be closed: %v, want %v", now, !want, want)
		}
	}
	mayClose(3.45, true)
	idle, _ := tr.Closable()
	first := idle[0]
	tr.NoteClosed(&first)
	kept := &world.lives[first.Cookie-1]
	kept.moves = slices.DeleteFunc(kept.moves, func(m move) bool { return m.at > s(3.45) })
	mayClose(3.5, false)
	kept.unread = 5
	mayClose(4, false)
	if v := tr.Verdict(); v.AtRisk != 1 {
		t.Errorf("%d requests are at risk, want 1", v.AtRisk)
	}
	mayClose(5.4, false)
	if v := tr.Verdict(); v.AtRisk != 0 || tr.Summary().LeftOut.GivenUp != 1 {
		t.Errorf("%d requests are at risk, %d given up, want 0 and 1", v.AtRisk, tr.Summary().LeftOut.GivenUp)
	}
	kept.state = tcp.TimeWait
	mayClose(5.5, true)
}

// Some clients do not notice that a connection has been closed, and lose the next request. Of a
// peer's connections, one more may be open than its clients have closed in turn, and none is
// closed while more than half of them were used once more.
func TestClientKeepsClosed(t *testing.T) {
	world := parseWorld("close-idle talks=-0.9; talks=-0.8; talks=-0.7; talks=-0.6; talks=-0.5 peer=10.0.0.7; talks=-0.4 peer=10.0.0.7")
	_, tr := world.until(s(3.4), conditions["any"])
	now := s(3.4)
	// show shows two samples in which connections have these states.
	show := func(state tcp.State, ids ...int) {
		for _, id := range ids {
			world.lives[id].state = state
			world.lives[id].shown.withoutInfo = true
		}
		for range 2 {
			now += s(0.025)
			world.sample(tr, now)
		}
	}
	candidate := func(id int) *Closable {
		cookie := uint64(id + 1)
		return &Closable{Cookie: cookie, conn: tr.conns[cookie]}
	}
	want := func(id int, may bool, when string) {
		t.Helper()
		if tr.MayClose(candidate(id)) != may {
			t.Errorf("%s: connection %d may be closed: %v, want %v", when, id, !may, may)
		}
	}
	tr.NoteClosed(candidate(0))
	show(tcp.FinWait2, 0)
	want(1, false, "the client keeps the connection")
	want(4, true, "a client of another peer does")
	show(tcp.TimeWait, 0)
	want(1, true, "the client has closed the connection")
	tr.NoteClosed(candidate(1))
	tr.NoteClosed(candidate(4))
	show(tcp.FinWait2, 1, 4)
	want(2, true, "one of two is closed")
	world.lives[1].close, world.lives[4].close = now, now
	show(tcp.FinWait2)
	want(2, true, "one of two was used once more")
	want(5, false, "the only one was used once more")
	tr.NoteClosed(candidate(2))
	show(tcp.FinWait2, 2)
	world.lives[2].close = now
	world.incomplete = span{now, now + s(0.06)}
	show(tcp.FinWait2)
	want(3, true, "the samples are incomplete")
	show(tcp.FinWait2)
	want(3, false, "two of three were used once more")
}
