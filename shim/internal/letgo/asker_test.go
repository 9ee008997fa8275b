package letgo

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"net/netip"
	"os"
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

// askerIn returns an Asker that is told about each sample of a world, to close connections, or to send GOAWAY.
func askerIn(w *world.World, goaway bool) *Asker {
	cfg := Config{QuietFor: s(3), CloseIdle: true}
	if goaway {
		cfg = Config{QuietFor: s(3), Goaway: []uint16{80}}
	}
	a := New(cfg)
	w.Then = func(h *world.Hold, _ time.Duration) { a.updateAndAnswer(h.Latest, h.NoneNewFor, Answer{HTTP2: goaway}) }
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
	for _, y := range a.TakeUnknown() {
		a.NoteAnswer(y, answer)
	}
}

// setProof sets the proofs of all servers.
func (a *Asker) setProof(usual, hot float64) {
	for _, y := range a.servers {
		y.usual.proof, y.hot.proof = usual, hot
	}
}

// byCookie returns the kept connection with a cookie, nil without one.
func (a *Asker) byCookie(cookie int) *Kept { return a.kept[uint64(cookie)] }

func readTable(t *testing.T, name string) [][]string {
	table, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return tables.Rows(string(table))
}

// check checks that each wanted word is one of those that were found.
func check(t *testing.T, name, got, want string) {
	for word := range strings.FieldsSeq(want) {
		if !slices.Contains(strings.Fields(got), word) {
			t.Errorf("%s: %s; want %s", name, got, word)
		}
	}
}

// TestAsker: what an Asker finds out about kept connections, and which it may ask.
func TestAsker(t *testing.T) {
	for _, cells := range readTable(t, "testdata/asker.txt") {
		t.Run(cells[0], func(t *testing.T) {
			options := struct {
				Proof, Hot      float64
				Waited          time.Duration
				Natural, Goaway bool
			}{Proof: enoughCycles}
			at, words, _ := strings.Cut(cells[1], " ")
			for word := range strings.FieldsSeq(words) {
				name, value, _ := strings.Cut(word, "=")
				if found, err := tables.Set(&options, name, value); !found || err != nil {
					t.Fatal(word, err)
				}
			}
			w := world.Parse(cells[2])
			a := askerIn(&w, options.Goaway)
			isAsked := false
			note := w.Then
			w.Then = func(h *world.Hold, now time.Duration) {
				note(h, now)
				isAsked = isAsked || slices.ContainsFunc(a.ToAsk(), func(k *Kept) bool { return a.MayAsk(k, &k.Socket) })
			}
			if !options.Natural {
				w.Poll = cmp.Or(w.Poll, s(0.025))
				w.Pause = func() time.Duration {
					if a.now < ledger.Trigger+s(2) {
						return w.Poll
					}
					return s(0.025)
				}
			}
			seconds, _ := strconv.ParseFloat(at, 64)
			w.Until(s(seconds), world.Conditions["any"])

			k := a.byCookie(1)
			p := &k.server.usual
			got := fmt.Sprintf("asked=%v watching=%v near=%v pause=%v proof=%v limit=%v",
				isAsked, a.Watching(), k.isNear(), k.pause, math.Round(p.proof), p.idle.Truncate(time.Millisecond))
			a.setProof(options.Proof, options.Hot)
			if options.Waited > 0 {
				a.asked.at = a.now - options.Waited
			}
			check(t, "", got+fmt.Sprint(" idle=", len(a.idle())), cells[3])
		})
	}
}

// TestAsked: what becomes of connections whose clients were asked, and who may be asked then.
func TestAsked(t *testing.T) {
	var w world.World
	var a *Asker
	var h *world.Hold
	scene := ""
	for _, cells := range readTable(t, "testdata/asked.txt") {
		if len(cells) == 2 {
			scene = cells[0]
			w = world.Parse(cells[1])
			a = askerIn(&w, strings.HasPrefix(scene, "GOAWAY"))
			_, h = w.Until(s(3.9), world.Conditions["any"])
			a.setProof(enoughCycles, 0)
			continue
		}
		at, _ := strconv.ParseFloat(cells[0], 64)
		for event := range strings.FieldsSeq(cells[1]) {
			name, value, _ := strings.Cut(event, "=")
			id, word, isLife := strings.Cut(event, ".")
			n, _ := strconv.Atoi(cmp.Or(value, id))
			switch {
			case name == "ask":
				k, now := a.byCookie(n), w.Lives[n-1].At(s(at))
				a.NoteAsked(k, &now)
			case name == "silent":
				l := &w.Lives[n-1]
				l.Moves = slices.DeleteFunc(l.Moves, func(m world.Move) bool { return m.At > s(3.9) })
			case name == "resets":
				w.Resets = uint64(n)
			case name == "uncounted":
				w.Uncounted = io.EOF
			case name == "incomplete":
				w.Incomplete.To = world.Never
			case name == "complete":
				w.Incomplete.To = 0
			case isLife:
				n, _ = strconv.Atoi(id)
				w.Lives[n-1].Set(word)
			}
		}
		w.Sample(h, s(at))
		kept := slices.SortedFunc(maps.Values(a.kept), func(a, b *Kept) int { return cmp.Compare(a.Cookie, b.Cookie) })
		toAsk := a.ToAsk()
		p := a.addClient(w.Lives[0].At(0).Remote.Addr())
		f := a.Figures()
		got := fmt.Sprintf("left=%d reset=%d closed=%d notified=%d back=%d watching=%v awaits=%v",
			p.left, p.reset, f.Closed, f.Notified, f.CameBack, a.Watching(), a.AwaitsClients())
		got += fmt.Sprintf(" at-risk=%d given-up=%d in-flight=%d in-use=%d", h.AtRisk, h.LeftOut.GivenUp, h.InFlight, h.InUse)
		got += " may=" + cookies(kept, func(k *Kept) bool { return !k.asked() && a.mayClose(k.from) })
		got += " now=" + cookies(kept, func(k *Kept) bool { return slices.Contains(toAsk, k) && a.MayAsk(k, &k.Socket) })
		got += " idle=" + cookies(a.idle(), func(*Kept) bool { return true })
		check(t, scene+" at "+cells[0], got, cells[2])
	}
}

// cookies returns the cookies of those connections of which something is so.
func cookies(list []*Kept, is func(*Kept) bool) string {
	var found []string
	for _, k := range list {
		if is(k) {
			found = append(found, fmt.Sprint(k.Cookie))
		}
	}
	return strings.Join(found, ",")
}

// TestIsIdle: a connection that has changed since the sample is not idle.
func TestIsIdle(t *testing.T) {
	k := &Kept{Conn: &ledger.Conn{Received: 9, Sent: 9}}
	for name, change := range map[string]func(*tcp.Socket){
		"":         func(*tcp.Socket) {},
		"received": func(s *tcp.Socket) { s.Info.Received++ },
		"sent":     func(s *tcp.Socket) { s.Info.Sent++ },
		"unread":   func(s *tcp.Socket) { s.Unread++ },
		"not sent": func(s *tcp.Socket) { s.Info.NotSent++ },
		"closing":  func(s *tcp.Socket) { s.State = tcp.CloseWait },
		"no info":  func(s *tcp.Socket) { s.HasInfo = false },
	} {
		now := tcp.Socket{State: tcp.Established, HasInfo: true, Info: tcp.Info{Received: 9, Sent: 9}}
		change(&now)
		if k.IsIdle(&now) != (name == "") {
			t.Errorf("%q: idle: %v", name, name != "")
		}
	}
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
		ledger: ledger.New(ledger.Config{Start: world.Start, LostAfter: s(1), MaxTie: s(9)}),
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
	w.setProof(enoughCycles, 0)
	for _, k := range w.kept {
		if hesitate && k.from.stay == 0 && k.answered() {
			w.NoteAsked(k, &k.Socket)
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
