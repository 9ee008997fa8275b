package letgo

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/world"
)

// s returns a number of seconds as a time.Duration.
var s = world.Seconds

// askerIn returns an Asker that is told about each sample of a world.
func askerIn(w *world.World) *Asker {
	a := New(Config{QuietFor: cmp.Or(w.QuietFor, s(3)), CloseIdle: true})
	w.Then = func(h *world.Hold, _ time.Duration) { a.updateAndAnswer(h.Latest, h.NoneNewFor, Answer{}) }
	w.Pause = func() time.Duration {
		if a.Watching() {
			return s(0.025)
		}
		return w.Poll
	}
	return a
}

// updateAndAnswer is Update; servers that are to be asked answer at once.
func (a *Asker) updateAndAnswer(sample *ledger.Sample, noneNewFor time.Duration, answer Answer) {
	a.Update(sample, noneNewFor)
	for _, y := range a.Unasked() {
		a.NoteAnswer(y, answer)
	}
}

// limitsOf returns the limits of the server on a port, or others if none is followed.
func (a *Asker) limitsOf(port uint16) *limits {
	for at, y := range a.servers {
		if at.Port() == port {
			return &y.limits
		}
	}
	return &limits{}
}

// ask asks the client of a connection as MayAsk permits, for the caller.
func (a *Asker) ask(k *Kept) { a.NoteAsked(k, &k.Socket) }

// byCookie returns the kept connection with a cookie, nil without one.
func (a *Asker) byCookie(cookie int) *Kept { return a.kept[uint64(cookie)] }

// TestCycles: as many connections are idle for certain.
func TestCycles(t *testing.T) {
	for _, r := range world.ReadRows(t, "testdata/cycles.txt") {
		t.Run(r.Name, func(t *testing.T) {
			w := &r.World
			a := askerIn(w)
			w.Pause = func() time.Duration {
				now := a.now - ledger.Trigger
				if now < s(2) && w.Poll < s(0.25) || now >= s(2) {
					return s(0.025)
				}
				return w.Poll
			}
			w.Poll = cmp.Or(w.Poll, s(0.025))
			w.Until(r.At, r.Cond)
			a.limitsOf(80)[0].proof = enoughCycles
			a.limitsOf(81)[0].proof = enoughCycles
			if got := fmt.Sprint(len(a.idle())); got != r.Want {
				t.Errorf("%s, want %s", got, r.Want)
			}
		})
	}
}

// TestEnds: those that were used the longest time ago, or the shortest, are closed later.
func TestEnds(t *testing.T) {
	for _, cells := range tables.Rows(`
		# last used at | half a second after the latest question, and before
		0.1                     | 1 0
		0.1 0.08 0.06           | 3 1
		0.1 0.09 0.08 0.07 0.06 | 5 1
		0.1 0.08 -0.1 -0.2      | 4 3
		-0.1                    | 1 1
	`) {
		w := world.Parse("")
		for at := range strings.FieldsSeq(cells[0]) {
			n, _ := strconv.ParseFloat(at, 64)
			w.Lives = append(w.Lives, world.Parse(fmt.Sprintf("talks=%g", n-1.02)).Lives...)
		}
		a := askerIn(&w)
		w.Until(s(3.15), world.Conditions["any"])
		a.limitsOf(80)[0].proof = enoughCycles
		var got []string
		for _, since := range []time.Duration{waitForOthers, waitForOthers - 1} {
			a.asked.at = a.now - since
			got = append(got, strconv.Itoa(len(a.idle())))
		}
		if got := strings.Join(got, " "); got != cells[1] {
			t.Errorf("%s: %s, want %s", cells[0], got, cells[1])
		}
	}
}

// TestHot: a connection that is never idle for long is closed when nothing could be closed for a second.
func TestHot(t *testing.T) {
	w := world.Parse("open=-9 -9:99 -8:-500 0.5..9/0.033:99 0.52..9/0.033:-500")
	a := askerIn(&w)
	w.Pause = func() time.Duration { return s(0.025) }
	w.Until(s(3.32), world.Conditions["any"])
	for proof, want := range map[float64]int{EvenCycles - 1: 0, EvenCycles: 1} {
		*a.limitsOf(80) = limits{{idle: minIdle, proof: enoughCycles}, {idle: hotIdle, proof: proof}}
		for _, since := range []time.Duration{waitForAll - 1, waitForAll} {
			a.asked.at = a.now - since
			if got := len(a.idle()); got != want && since == waitForAll || got > 0 && since < waitForAll {
				t.Errorf("%v after the latest question, with a proof of %v: %d, want %d", since, proof, got, want)
			}
		}
	}
}

// TestFromTheMiddle: of an even number the lower of the two in the middle comes first.
func TestFromTheMiddle(t *testing.T) {
	for _, want := range [][]int{nil, {0}, {0, 1}, {1, 2, 0}, {1, 2, 0, 3}, {2, 3, 1, 4, 0}} {
		list := slices.Sorted(slices.Values(want))
		if got := fromTheMiddle(list); !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", list, got, want)
		}
	}
}

// The first to be closed is the one in the middle by idle time. A closed connection is not
// closed again, and a new connection of its peer came back.
func TestNoteClosed(t *testing.T) {
	w := world.Parse(`talks=-0.9; talks=-0.8; talks=-0.7 peer=10.0.0.7; talks=-0.6; talks=-0.5;
		open=4 4:100 4.01:-100; open=4 peer=10.0.0.7 4:100 4.01:-100; open=4 peer=10.0.0.7 4:100 4.01:-100`)
	a := askerIn(&w)
	_, tr := w.Until(s(3.9), world.Conditions["any"]) // last used at 3.1, 3.2, 3.3, 3.4 and 3.5
	a.limitsOf(80)[0].proof = enoughCycles
	idle := a.idle()
	if len(idle) != 5 {
		t.Fatalf("%d idle, want 5", len(idle))
	}
	first := idle[0]
	if first.Remote.Addr().String() != "10.0.0.7" {
		t.Errorf("the first has been idle for %v", first.idleFor())
	}
	now := w.Lives[2].At(s(3.95))
	if !first.IsIdle(&now) {
		t.Errorf("not idle: %+v", now)
	}
	for name, change := range map[string]func(*tcp.Socket){
		"received": func(s *tcp.Socket) { s.Info.Received++ },
		"sent":     func(s *tcp.Socket) { s.Info.Sent++ },
		"unread":   func(s *tcp.Socket) { s.Unread++ },
		"not sent": func(s *tcp.Socket) { s.Info.NotSent++ },
		"closing":  func(s *tcp.Socket) { s.State = tcp.CloseWait },
		"no info":  func(s *tcp.Socket) { s.HasInfo = false },
	} {
		changed := now
		change(&changed)
		if first.IsIdle(&changed) {
			t.Errorf("%s: idle", name)
		}
	}
	a.ask(first)
	w.Sample(tr, s(3.95))
	if n := len(a.idle()); n != 4 {
		t.Errorf("then %d idle, want 4", n)
	}
	w.Sample(tr, s(4.02))
	if len(a.ToAsk()) > 0 {
		t.Error("connections may be closed although new ones come")
	}
	if got := a.Figures(); got.Closed != 1 || got.CameBack != 1 {
		t.Errorf("%+v, want 1 and 1", got)
	}
}

// A server may keep connections whose clients seem to have left. Of those that are closed, one
// more may be open than the server has closed. One with a request that the server does not
// read holds for a second, as of a hung server.
func TestServerKeepsClosed(t *testing.T) {
	w := world.Parse("talks=-0.9; talks=-0.8 peer=10.0.0.7; talks=-0.7")
	a := askerIn(&w)
	_, tr := w.Until(s(3.9), world.Conditions["any"])
	mayClose := func(now float64, want bool) {
		t.Helper()
		w.Sample(tr, s(now))
		if a.mayClose(a.byCookie(3).from) != want {
			t.Errorf("at %v s another may be closed: %v, want %v", now, !want, want)
		}
	}
	mayClose(3.95, true)
	a.limitsOf(80)[0].proof = enoughCycles
	first := a.idle()[0]
	a.ask(first)
	kept := &w.Lives[first.Cookie-1]
	kept.Moves = slices.DeleteFunc(kept.Moves, func(m world.Move) bool { return m.At > s(3.95) })
	mayClose(4, false)
	kept.Unread = 5
	mayClose(4.04, false)
	if n := tr.AtRisk; n != 1 {
		t.Errorf("%d requests are at risk, want 1", n)
	}
	mayClose(5.4, false)
	if got := tr; got.AtRisk != 0 || got.LeftOut.GivenUp != 1 {
		t.Errorf("%d requests are at risk, %d given up, want 0 and 1", got.AtRisk, got.LeftOut.GivenUp)
	}
	kept.State = tcp.TimeWait
	mayClose(5.5, true)
}

// Some clients do not notice that a connection has been closed, and lose the next request. Of a
// peer's connections, one more may be open than its clients have closed in turn, and none is
// closed after two were used once more.
func TestClientKeepsClosed(t *testing.T) {
	w := world.Parse("talks=-0.9; talks=-0.8; talks=-0.7; talks=-0.6; talks=-0.5 peer=10.0.0.7; talks=-0.4 peer=10.0.0.7")
	a := askerIn(&w)
	_, tr := w.Until(s(3.9), world.Conditions["any"])
	now := s(3.9)
	// show shows two samples in which connections have these states.
	show := func(state tcp.State, ids ...int) {
		for _, id := range ids {
			w.Lives[id].State = state
			w.Lives[id].Shown.NoInfo = true
		}
		for range 2 {
			now += s(0.025)
			w.Sample(tr, now)
		}
	}
	conn := func(id int) *Kept { return a.byCookie(id + 1) }
	want := func(id int, may bool, when string) {
		t.Helper()
		if a.mayClose(conn(id).from) != may {
			t.Errorf("%s: connection %d may be closed: %v, want %v", when, id, !may, may)
		}
	}
	a.ask(conn(0))
	show(tcp.FinWait2, 0)
	want(1, false, "the client keeps the connection")
	want(4, true, "a client of another peer does")
	show(tcp.TimeWait, 0)
	want(1, true, "the client has closed the connection")
	a.ask(conn(1))
	a.ask(conn(4))
	show(tcp.FinWait2, 1, 4)
	want(2, true, "one of two is closed")
	w.Lives[1].Close, w.Lives[4].Close = now, now
	w.Resets += 2
	show(tcp.FinWait2)
	want(2, true, "one of two was used once more")
	want(5, true, "the only one was used once more")
	a.ask(conn(2))
	show(tcp.FinWait2, 2)
	w.Lives[2].Close = now
	w.Resets++
	w.Incomplete = world.Span{From: now, To: now + s(0.06)}
	show(tcp.FinWait2)
	if n := a.clients[conn(3).Remote.Addr()].reset; n != 1 {
		t.Errorf("%d were used once more, as an incomplete sample shows, want 1", n)
	}
	show(tcp.FinWait2)
	want(3, false, "two were used once more")
}

// BenchmarkPass is what a sample costs of kept connections of which half are idle; or of which none may be
// closed, since their clients hesitate: one of each of them has been closed, and is open.
func BenchmarkPass(b *testing.B) {
	for _, hesitate := range []bool{true, false} {
		for _, n := range []int{1_000, 10_000, 30_000} {
			b.Run(fmt.Sprintf("hesitate=%v/%d", hesitate, n), func(b *testing.B) {
				w := newKeptWorld(n, hesitate)
				for b.Loop() {
					w.pass()
				}
			})
		}
	}
}

// keptWorld has connections that talk in turn, half of them idle, and whose clients hesitate.
type keptWorld struct {
	*Asker
	ledger *ledger.Ledger
	conns  []tcp.Socket
	at     time.Duration
}

func newKeptWorld(n int, hesitate bool) *keptWorld {
	w := &keptWorld{
		Asker:  New(Config{QuietFor: s(4), CloseIdle: true}),
		ledger: ledger.New(ledger.Config{Start: world.Start, Late: s(1), MaxTie: s(9)}),
	}
	for i := range n {
		peer := netip.AddrFrom4([4]byte{10, 0, byte(i % (n / 8) >> 8), byte(i % (n / 8))}) // eight of each client
		w.conns = append(w.conns, tcp.Socket{
			State: tcp.Established, Inode: 1, Cookie: uint64(i + 1), HasInfo: true,
			Local: netip.MustParseAddrPort("10.0.0.99:80"), Remote: netip.AddrPortFrom(peer, uint16(1000+i%60_000)),
			Info: tcp.Info{Received: 500, Sent: 900, Segments: 5, SentSegments: 5, LastReceived: s(9), LastSent: s(9)},
		})
	}
	for range 10 {
		w.sample()
	}
	w.limitsOf(80)[0].proof = enoughCycles
	for _, k := range w.kept {
		if hesitate && k.from.stay == 0 && k.answered() {
			w.ask(k)
		}
	}
	w.sample()
	if idle := len(w.idle()); idle < min(n, manyIdle)/10 {
		panic(fmt.Sprint(idle, " are idle"))
	}
	return w
}

// sample takes a sample, before which a half of the connections has had a request and its answer.
func (w *keptWorld) sample() {
	w.at += 25 * time.Millisecond
	half := int(w.at/(25*time.Millisecond)) % 2
	w.ledger.Begin(world.Start.Add(w.at))
	for i := range w.conns {
		info := &w.conns[i].Info
		info.LastReceived, info.LastSent = info.LastReceived+25*time.Millisecond, info.LastSent+25*time.Millisecond
		if i%2 == half {
			info.Received, info.Sent = info.Received+300, info.Sent+500
			info.Segments, info.SentSegments = info.Segments+1, info.SentSegments+1
			info.LastReceived, info.LastSent = 8*time.Millisecond, time.Duration(i%8)*time.Millisecond
		}
		w.ledger.Observe(&w.conns[i], ledger.Clients)
	}
	w.updateAndAnswer(w.ledger.End(ledger.Rest{}), w.at, Answer{})
}

// pass is what the Asker does of a sample.
func (w *keptWorld) pass() {
	w.Update(w.ledger.End(ledger.Rest{}), w.at)
	w.Watching()
	w.ToAsk()
}
