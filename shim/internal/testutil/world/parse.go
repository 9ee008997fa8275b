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
	"answered":  "0:100 0.01:-200",                            // a request and its response
	"request":   "close=0.05 0:100 0.01:-200",                 // the same, on a connection of its own
	"probe":     "close=0.004 0.001:77 0.002:-100",            // that of a health check
	"slow":      "open=-5 -5:100 -4:-200 -1:100 9:-200",       // a request that takes 10 s
	"done":      "pure-acks=$ open=-9 -9:4 -9:-2 -5:4 -5:-2",  // a tie, with so many pure ACKs
	"waits":     "pure-acks=$ open=-9 -9:4 -5:4 -5:-4",        // the same, with a segment less sent
	"waiting":   "open=-3 unaccepted unread=100 -3:100",       // a request in the accept queue
	"talks":     "open=-60 -60:500 -59:-500 $..50/1:200,-200", // a request and its response each second
	"old":       "open=-9 -9:99 -8:-500",
	"asks":      "0.5..$/1:99 0.6..$/1:-500",                               // a request each second, up to a time
	"alike":     "open=-70 -70..9/1:99 -69.95..9/1:-300",                   // the same for a minute and more
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
		Clients     int
		Every, Pool []float64
	}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		if name == "at" {
			at := number(value)
			all.Every = []float64{1, at, at + 1}
			continue
		}
		l.set(word, w, &all)
	}
	slices.SortStableFunc(l.Moves, func(a, b Move) int { return int(a.At - b.At) })
	switch {
	case all.Pool != nil:
		list = pool(int(all.Pool[0]), all.Pool[1])
	case all.Every != nil:
		period, clients := all.Every[0], max(all.Clients, 1)
		for i := range clients {
			if clients > 1 {
				l.Peer = fmt.Sprintf("10.0.%d.%d", 4+i/250, i%250)
			}
			from := all.Every[1] + period*float64(i)/float64(clients)
			list = append(list, every(Seconds(period), Seconds(from), Seconds(all.Every[2]), l)...)
		}
	case l.Open != 0 || l.Moves != nil:
		list = append(list, l)
	}
	return list
}

// Set sets a field of the world, or after "2." one of the second connection, or adds a move to that.
func (w *World) Set(word string) {
	id, rest, isOfLife := strings.Cut(word, ".")
	if isOfLife {
		w.Lives[int(number(id))-1].set(rest)
	} else {
		new(Life).set(word, w)
	}
}

// set sets a field of the connection or of others, or adds a move.
func (l *Life) set(word string, others ...any) {
	name, value, _ := strings.Cut(word, "=")
	for _, in := range append(others, l) {
		if tables.Set(in, name, value, seconds, span, spans, parseMoves, netip.ParsePrefix,
			func(text string) tcp.State { return states[text] },
			func(text string) traffic.ProbeRule { return rules[text] }) {
			return
		}
	}
	l.Moves = append(l.Moves, parseMoves(word)...)
}

func seconds(text string) time.Duration { return Seconds(number(text)) }

func span(text string) Span {
	from, to, _ := strings.Cut(text, ",")
	return Span{seconds(from), seconds(to)}
}

func spans(text string) []Span { return []Span{span(text)} }

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
