package world

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// macros stand for other words; $ is the macro's value.
var macros = map[string]string{
	"answered":  "0:100 0.01:-200",                                         // a request and its response
	"request":   "close=0.05 0:100 0.01:-200",                              // the same, on a connection of its own
	"probe":     "close=0.004 0.001:77 0.002:-100",                         // that of a health check
	"slow":      "open=-5 -5:100 -4:-200 -1:100 9:-200",                    // a request that takes 10 s
	"done":      "pure-acks=$ open=-9 -9:4 -9:-2 -5:4 -5:-2",               // a tie, with so many pure ACKs
	"waits":     "pure-acks=$ open=-9 -9:4 -5:4 -5:-4",                     // the same, with a segment less sent
	"waiting":   "open=-3 accepted=-1 unread=100 -3:100",                   // a request in the accept queue
	"talks":     "open=-60 -60:500 -59:-500 $..50/1:200,-200",              // a request and its response each second
	"busy":      "unsent=5 open=-60 -60:500 -59:-500 $..50/1:200,-200",     // the same, not acknowledged
	"websocket": "open=-100 -100:100 -99:-100 -10..$/1:5 -9.999..$.5/1:-5", // a message and a response each second
}

var states = map[string]tcp.State{
	"SYN_RECV": tcp.SynRecv, "FIN_WAIT1": tcp.FinWait1, "FIN_WAIT2": tcp.FinWait2,
	"TIME_WAIT": tcp.TimeWait, "CLOSE_WAIT": tcp.CloseWait,
}

var rules = map[string]traffic.ProbeRule{"ignore": traffic.IgnoreProbes, "count": traffic.CountProbes}

// Parse reads a world: connections, separated by semicolons, of which each has words. A word
// is a macro, a field of the connection or of the world, or a move, TIME:BYTES or
// FROM..TO/PERIOD:BYTES. With at=TIME or every=PERIOD,FROM,TO all times are relative to the
// connection's own.
func Parse(text string) (w World) {
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
		w.Lives = append(w.Lives, w.parseLives(words)...)
	}
	return w
}

// parseLives reads connections, and sets fields of the world.
func (w *World) parseLives(words []string) (list []Life) {
	var l Life
	var all struct {
		Clients                uint32
		Alternating            bool
		Every, Pool, Differing []float64
	}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		if name == "at" {
			at := number(value)
			all.Every = []float64{1, at, at + 1}
			continue
		}
		isField := false
		for _, in := range []any{&l, &l.Shown, w, &all} {
			isField = isField || set(in, name, value)
		}
		if !isField {
			l.Moves = append(l.Moves, parseMoves(word)...)
		}
	}
	slices.SortStableFunc(l.Moves, func(a, b Move) int { return int(a.At - b.At) })
	switch {
	case all.Pool != nil:
		list = pool(int(all.Pool[0]), all.Pool[1])
	case all.Differing != nil:
		list = differing(int(all.Differing[0]), all.Differing[1])
	case all.Every != nil:
		period, clients := all.Every[0], max(all.Clients, 1)
		for i := range clients {
			if clients > 1 {
				l.Peer = fmt.Sprintf("10.0.1.%d", i)
			}
			from := all.Every[1] + period*float64(i)/float64(clients)
			list = append(list, every(Seconds(period), Seconds(from), Seconds(all.Every[2]), l)...)
		}
	case l.Open != 0 || l.Moves != nil:
		list = append(list, l)
	}
	if all.Alternating {
		alternate(list)
	}
	return list
}

// Set sets a field of a connection, or adds a move.
func (l *Life) Set(word string) {
	name, value, _ := strings.Cut(word, "=")
	if !set(l, name, value) && !set(&l.Shown, name, value) {
		l.Moves = append(l.Moves, parseMoves(word)...)
	}
}

// set sets a field of a struct, and reports whether there is one.
func set(in any, name, value string) bool {
	found, err := tables.Set(in, name, value, seconds, numbers, span, parseMoves, netip.ParsePrefix,
		func(text string) tcp.State { return states[text] },
		func(text string) traffic.ProbeRule { return rules[text] })
	if err != nil {
		panic(fmt.Sprint(name, ": ", err))
	}
	return found
}

func seconds(text string) time.Duration { return Seconds(number(text)) }

func numbers(text string) (all []float64) {
	for part := range strings.SplitSeq(text, ",") {
		all = append(all, number(part))
	}
	return all
}

func span(text string) Span {
	n := numbers(text)
	return Span{Seconds(n[0]), Seconds(n[1])}
}

// answerTime is from a move to the next of a list.
const answerTime = 20 * time.Millisecond

// parseMoves reads TIME:BYTES or FROM..TO/PERIOD:BYTES, or a list of bytes.
func parseMoves(word string) (moves []Move) {
	when, bytes, _ := strings.Cut(word, ":")
	from, rest, repeated := strings.Cut(when, "..")
	to, period, _ := strings.Cut(rest, "/")
	first, last, each := Seconds(number(from)), Seconds(number(from)), time.Second
	if repeated {
		last, each = Seconds(number(to)), Seconds(number(period))
	}
	for at := first; at <= last; at += each {
		for i, n := range strings.Split(bytes, ",") {
			moves = append(moves, Move{at + time.Duration(i)*answerTime, int(number(n))})
		}
	}
	return moves
}

// every returns a connection for each period of a time.
func every(period, from, to time.Duration, l Life) (list []Life) {
	for at := from; at < to; at += period {
		next := l
		next.Open += at
		if l.Close != 0 {
			next.Close += at
		}
		next.Moves = nil
		for _, m := range l.Moves {
			next.Moves = append(next.Moves, Move{at + m.At, m.Bytes})
		}
		list = append(list, next)
	}
	return list
}

// pool returns connections of two peers, older than the trigger, with a request of varying
// size and a response every 0.7 s or so up to a time in seconds.
func pool(n int, until float64) (list []Life) {
	for i := range n {
		l := Life{Peer: fmt.Sprintf("10.0.3.%d", i%2), Open: Seconds(-60), Moves: []Move{{Seconds(-60), 500}, {Seconds(-59), -500}}}
		size := 100 + i
		for at := -5 + 0.1*float64(i); at < until; at += 0.6 + float64(size%7)/20 {
			l.Moves = append(l.Moves, Move{Seconds(at), size}, Move{Seconds(at + 0.005), -300})
			size += 13
		}
		list = append(list, l)
	}
	return list
}

// differing returns short connections, in so many seconds, that all differ in the bytes
// received or in the peer.
func differing(n int, seconds float64) (list []Life) {
	for i := range n {
		at := seconds * float64(i) / float64(n)
		list = append(list, Life{
			Peer: fmt.Sprintf("10.0.2.%d", i%250), Open: Seconds(at), Close: Seconds(at + 0.02),
			Moves: []Move{{Seconds(at + 0.002), 100 + i/250}, {Seconds(at + 0.01), -200}},
		})
	}
	return list
}

// alternate gives every other connection 25 more bytes that the program does not read, as a
// close_notify of TLS may arrive, and the others a byte less.
func alternate(list []Life) {
	for i := range list {
		if i%2 == 0 {
			list[i].Moves = append(list[i].Moves, Move{list[i].Close, 25})
			list[i].Unread = 25
		} else {
			list[i].Moves[0].Bytes--
		}
	}
}
