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
func askerIn(w *world.World, isNatural, goaway bool) *Asker {
	cfg := Config{QuietFor: s(3), CloseIdle: true}
	if goaway {
		cfg = Config{QuietFor: s(3), Goaway: []uint16{80}}
	}
	a := New(cfg)
	w.Then = func(h *world.Hold, _ time.Duration) { a.updateAndAnswer(h.Latest, h.NoneNewFor, Answer{HTTP2: goaway}) }
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

//go:embed testdata/asker.txt
var scenes string

// TestAsker: what an Asker finds out about kept connections, which it may ask, and what becomes of those.
func TestAsker(t *testing.T) {
	var w world.World
	var a *Asker
	var h *world.Hold
	var isAsked bool
	scene := ""
	for _, cells := range tables.Rows(scenes) {
		at, words, _ := strings.Cut(cells[1], " ")
		seconds, _ := strconv.ParseFloat(at, 64)
		got := ""
		if cells[0] != "" {
			options := struct {
				Proof, Hot      float64
				Waited          time.Duration
				Natural, Goaway bool
			}{Proof: enoughCycles}
			for word := range strings.FieldsSeq(words) {
				name, value, _ := strings.Cut(word, "=")
				if !tables.Set(&options, name, value) {
					t.Fatal(word)
				}
			}
			scene, isAsked = cells[0], false
			w = world.Parse(cells[2])
			if !options.Natural {
				w.Poll = cmp.Or(w.Poll, s(0.025))
			}
			a = askerIn(&w, options.Natural, options.Goaway)
			note := w.Then
			w.Then = func(h *world.Hold, now time.Duration) {
				note(h, now)
				isAsked = isAsked || slices.ContainsFunc(a.ToAsk(), func(k *Kept) bool { return a.MayAsk(k, &k.Socket) })
			}
			_, h = w.Until(s(seconds), nil)
			k := a.kept[1]
			p := &k.server.usual
			got = fmt.Sprintf("near=%v pause=%v proof=%v limit=%v ",
				k.isNear(), k.pause, math.Round(p.proof), p.idle.Truncate(time.Millisecond))
			for _, y := range a.servers {
				y.usual.proof, y.hot.proof = options.Proof, options.Hot
			}
			if options.Waited > 0 {
				a.askedAt = a.now - options.Waited
			}
		} else {
			happen(a, &w, s(seconds), cells[2])
			w.Sample(h, s(seconds))
		}
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
		lists := strings.ReplaceAll(fmt.Sprintf(";may=%v;now=%v;order=%v;idle=%d", may, now, idle, len(idle)), " ", ",")
		got += fmt.Sprintf("%+v %+v %+v asked=%v watching=%v awaits=%v", *a.addClient(w.Lives[0].At(0).Remote.Addr()),
			a.Figures(), h.Sample, isAsked, a.Watching(), a.AwaitsClients())
		got += strings.ReplaceAll(lists, ";", " ")
		if lacking := tables.Lacking(got, cells[3]); len(lacking) > 0 {
			t.Errorf("%s at %s: want %s; got %s", scene, at, lacking, got)
		}
	}
}

// happen has events happen in a world.
func happen(a *Asker, w *world.World, at time.Duration, events string) {
	for event := range strings.FieldsSeq(events) {
		name, value, _ := strings.Cut(event, "=")
		n, _ := strconv.Atoi(value)
		switch name {
		case "ask":
			k, now := a.kept[uint64(n)], w.Lives[n-1].At(at)
			a.NoteAsked(k, &now)
		case "silent":
			l := &w.Lives[n-1]
			l.Moves = slices.DeleteFunc(l.Moves, func(m world.Move) bool { return m.At > s(3.9) })
		default:
			w.Set(event)
		}
	}
}

// TestIsIdle: a connection that has changed since the sample is not idle.
func TestIsIdle(t *testing.T) {
	k := &Kept{Conn: &ledger.Conn{Received: 9, Sent: 9}}
	const changes = "Cookie=1 Info.Received=10 Info.Sent=10 Unread=1 Info.NotSent=1 State=8 HasInfo=zero"
	for change := range strings.FieldsSeq(changes) {
		now := tcp.Socket{State: tcp.Established, HasInfo: true, Info: tcp.Info{Received: 9, Sent: 9}}
		field, value, _ := strings.Cut(change, "=")
		if !tables.Set(&now, field, value) || k.IsIdle(&now) != (field == "Cookie") {
			t.Error(change)
		}
	}
}
