package letgo

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
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

// askerIn returns an Asker that is told about each sample of a world, to close connections, or to send GOAWAY. Samples
// are 25 ms apart while it wants that, or from the third second on.
func askerIn(w *world.World, isNatural, goaway bool, answer Answer) *Asker {
	cfg := Config{QuietFor: s(3), CloseIdle: true}
	if goaway {
		cfg = Config{QuietFor: s(3), Goaway: []uint16{80}}
		answer.HTTP2 = true
	}
	a := New(cfg)
	w.Then = func(h *world.Hold, _ time.Duration) { a.updateAndAnswer(h.Latest, h.NoneNewFor, answer) }
	w.Pause = func() time.Duration {
		if isNatural && a.Watching() || !isNatural && a.now >= ledger.Trigger+s(2) {
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

//go:embed testdata/asker.txt
var askerRows string

//go:embed testdata/asked.txt
var askedRows string

// TestAsker: what an Asker finds out about kept connections, and which it may ask.
func TestAsker(t *testing.T) {
	for _, cells := range tables.Rows(askerRows) {
		t.Run(cells[0], func(t *testing.T) {
			options := struct {
				Proof, Hot      float64
				Waited          time.Duration
				Natural, Goaway bool
				Answer
			}{Proof: enoughCycles}
			at, words, _ := strings.Cut(cells[1], " ")
			for word := range strings.FieldsSeq(words) {
				name, value, _ := strings.Cut(word, "=")
				if !tables.Set(&options, name, value) {
					t.Fatal(word)
				}
			}
			w := world.Parse(cells[2])
			if !options.Natural {
				w.Poll = cmp.Or(w.Poll, s(0.025))
			}
			a := askerIn(&w, options.Natural, options.Goaway, options.Answer)
			isAsked := false
			note := w.Then
			w.Then = func(h *world.Hold, now time.Duration) {
				note(h, now)
				isAsked = isAsked || slices.ContainsFunc(a.ToAsk(), func(k *Kept) bool { return a.MayAsk(k, &k.Socket) })
			}
			seconds, _ := strconv.ParseFloat(at, 64)
			w.Until(s(seconds), nil)

			k := a.kept[1]
			p := &k.server.usual
			got := fmt.Sprintf("asked=%v watching=%v near=%v pause=%v proof=%v limit=%v",
				isAsked, a.Watching(), k.isNear(), k.pause, math.Round(p.proof), p.idle.Truncate(time.Millisecond))
			a.setProof(options.Proof, options.Hot)
			if options.Waited > 0 {
				a.asked.at = a.now - options.Waited
			}
			got += fmt.Sprint(" idle=", len(a.idle()))
			if lacking := tables.Lacking(got, cells[3]); len(lacking) > 0 {
				t.Errorf("want %s; got %s", lacking, got)
			}
		})
	}
}

// TestAsked: what becomes of connections whose clients were asked, and who may be asked then.
func TestAsked(t *testing.T) {
	var w world.World
	var a *Asker
	var h *world.Hold
	scene := ""
	for _, cells := range tables.Rows(askedRows) {
		if len(cells) == 2 {
			scene = cells[0]
			w = world.Parse(cells[1])
			a = askerIn(&w, true, strings.HasPrefix(scene, "GOAWAY"), Answer{})
			_, h = w.Until(s(3.9), nil)
			a.setProof(enoughCycles, 0)
			continue
		}
		at, _ := strconv.ParseFloat(cells[0], 64)
		for event := range strings.FieldsSeq(cells[1]) {
			name, value, _ := strings.Cut(event, "=")
			n, _ := strconv.Atoi(value)
			switch name {
			case "ask":
				k, now := a.kept[uint64(n)], w.Lives[n-1].At(s(at))
				a.NoteAsked(k, &now)
			case "silent":
				l := &w.Lives[n-1]
				l.Moves = slices.DeleteFunc(l.Moves, func(m world.Move) bool { return m.At > s(3.9) })
			default:
				w.Set(event)
			}
		}
		w.Sample(h, s(at))
		var may, now, idle []int
		toAsk := a.ToAsk()
		for id := 1; id <= len(w.Lives); id++ {
			k := a.kept[uint64(id)]
			if k != nil && !k.asked() && a.mayClose(k.from) {
				may = append(may, id)
			}
			if slices.Contains(toAsk, k) && a.MayAsk(k, &k.Socket) {
				now = append(now, id)
			}
		}
		for _, k := range a.idle() {
			idle = append(idle, int(k.Cookie))
		}
		got := strings.ReplaceAll(fmt.Sprintf("may=%v;now=%v;idle=%v", may, now, idle), " ", ",")
		got = fmt.Sprintf("%+v %+v %+v watching=%v awaits=%v %s", *a.addClient(w.Lives[0].At(0).Remote.Addr()), a.Figures(),
			h.Sample, a.Watching(), a.AwaitsClients(), strings.ReplaceAll(got, ";", " "))
		if lacking := tables.Lacking(got, cells[2]); len(lacking) > 0 {
			t.Errorf("%s at %s: want %s; got %s", scene, cells[0], lacking, got)
		}
	}
}

// TestIsIdle: a connection that has changed since the sample is not idle.
func TestIsIdle(t *testing.T) {
	k := &Kept{Conn: &ledger.Conn{Received: 9, Sent: 9}}
	for _, change := range strings.Fields("Cookie=1 Info.Received=10 Info.Sent=10 Unread=1 Info.NotSent=1 State=8 HasInfo=zero") {
		now := tcp.Socket{State: tcp.Established, HasInfo: true, Info: tcp.Info{Received: 9, Sent: 9}}
		field, value, _ := strings.Cut(change, "=")
		if !tables.Set(&now, field, value) || k.IsIdle(&now) != (field == "Cookie") {
			t.Error(change)
		}
	}
}
