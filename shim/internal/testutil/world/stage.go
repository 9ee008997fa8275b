package world

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/internal/plays"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Stage plays a row in the simulated kernel, and returns the world and when the last step that
// counts ends. No client and no server knows when the hold ends.
func Stage(row *plays.Row) (w World, last time.Duration) {
	rtt := max(row.RTT, 100*time.Microsecond)
	var visits []*visit
	for _, p := range row.Plays {
		for i := range p.Clients {
			peer := fmt.Sprintf("10.8.%d.%d", p.Peer, len(visits)%250)
			if p.Peer != 0 {
				peer = fmt.Sprintf("10.9.0.%d", p.Peer)
			}
			var v *visit
			for moment := range p.Moments(i) {
				if moment > 2*Never {
					break
				}
				if v == nil || p.Renewed {
					v = newVisit(row.Server, max(moment, -2*Never), rtt)
					v.Peer, v.Port, v.protocol = peer, uint16(p.Port), p.Protocol
					visits = append(visits, v)
				}
				v.now = max(v.now, moment)
				for _, step := range p.Steps {
					v.take(step)
					if !p.Aside && !slices.Contains([]string{"wait", "until", "close"}, step.Verb) {
						last = max(last, v.now)
					}
				}
				if p.Renewed && v.protocol == "http" {
					v.Close = v.now + rtt
				}
			}
		}
	}
	for _, v := range visits {
		slices.SortStableFunc(v.Moves, func(a, b Move) int { return int(a.At - b.At) })
		if v.protocol != "" || v.State == tcp.SynRecv {
			w.Lives = append(w.Lives, v.Life)
		}
	}
	return w, last
}

// visit is a connection, with its client and its server.
type visit struct {
	Life
	protocol string        // "": no connection
	now      time.Duration // of the client
	busy     time.Duration // until when the server works on what it has received
	line     string        // what has come of the next one
	path     string        // of a request whose body comes
	need     int           // bytes of the body
	full     time.Duration // since when more waits to be sent than the peer's buffer takes; 0: never
}

func newVisit(server []string, at, rtt time.Duration) *visit {
	v := &visit{Life: Life{Open: at + rtt/2, RTT: rtt}, now: at}
	v.busy = v.Open
	switch mode, delay, _ := strings.Cut(strings.TrimPrefix(strings.Join(server, " "), "lab raw "), " "); mode {
	case "greet":
		v.busy += plays.Duration(delay)
		v.respond(0, 8)
	case "receiver":
		v.busy = plays.Forever
	}
	return v
}

// take takes a step.
func (v *visit) take(step plays.Step) {
	path, rest, _ := strings.Cut(step.Arg, " ")
	switch step.Verb {
	case "wait":
		v.now += plays.Duration(step.Arg)
	case "until":
		v.now = max(v.now, plays.Duration(step.Arg))
	case "send":
		v.send(testutil.Must(strconv.Unquote(`"` + step.Arg + `"`)))
	case "fill":
		v.send(strings.Repeat("x", plays.Number(step.Arg)))
	case "get":
		v.send("GET " + path + " HTTP/1.1\r\nHost: 10.9.0.2:8080\r\nUser-Agent: Go-http-client/1.1\r\n\r\n")
		v.await()
	case "upload":
		var count, size int
		var period string
		fmt.Sscan(rest, &count, &size, &period)
		v.send(fmt.Sprintf("POST %s HTTP/1.1\r\nContent-Length: %d\r\n\r\n", path, count*size))
		for range count {
			v.now += plays.Duration(period)
			v.send(strings.Repeat("x", size))
		}
		v.await()
	case "expect", "answer":
		v.await()
	case "fin":
		v.State = tcp.CloseWait
	case "close":
		v.Close = v.now + v.RTT/2
	case "syn":
		v.State, v.Vanished = tcp.SynRecv, v.now+time.Second
		v.Close = v.now + 63*time.Second
	default: // the address vanishes
		if v.full != 0 {
			v.Vanished = v.now
		} else if v.busy > v.now {
			v.Vanished = v.busy
		}
	}
}

// await lets the client read up to the end of the last answer.
func (v *visit) await() {
	if v.full != 0 && v.now > v.full {
		v.Unsent, v.During = 1, Span{v.full, v.now}
		v.busy = v.now
		v.respond(0, 1)
	}
	v.now = max(v.now, v.busy+v.RTT/2)
}

// send sends a request or a part of one, which the server answers in turn.
func (v *visit) send(text string) {
	at := v.now + v.RTT/2
	v.Moves = append(v.Moves, Move{at, len(text)})
	v.busy = max(v.busy, at)
	head, body, isHTTP := strings.Cut(text, "\r\n\r\n")
	switch {
	case v.need > 0:
		v.receive(text)
	case isHTTP:
		v.path = strings.Fields(head)[1]
		_, length, _ := strings.Cut(head, "Content-Length: ")
		v.need, _ = strconv.Atoi(strings.TrimSpace(length))
		if strings.Contains(head, "Expect:") {
			v.respond(0, 25)
		}
		v.receive(body)
	default:
		lines := strings.Split(v.line+text, "\n")
		v.line = lines[len(lines)-1]
		for _, line := range lines[:len(lines)-1] {
			v.obey(strings.Fields(line))
		}
	}
}

// receive receives a part of a body.
func (v *visit) receive(text string) {
	v.need -= len(text)
	switch {
	case v.need > 0:
	case v.path == "":
		v.respond(0, 1)
	default:
		v.serve()
	}
}

// obey carries out a line, see the server of package peers in cmd/lab.
func (v *visit) obey(words []string) {
	switch args := words[1:]; words[0] {
	case "answer":
		for ; len(args) >= 2; args = args[2:] {
			v.respond(plays.Duration(args[0]), plays.Number(args[1]))
		}
	case "push":
		for v.busy < Never {
			v.respond(plays.Duration(args[0]), plays.Number(args[1]))
		}
		v.busy = plays.Forever
	case "upload":
		v.path, v.need = "", plays.Number(args[0])
		return
	case "never":
		v.busy = plays.Forever
	}
	v.respond(0, 1)
}

// serve answers a request of HTTP.
func (v *visit) serve() {
	_, query, _ := strings.Cut(v.path, "?")
	options, _ := url.ParseQuery(query)
	option := func(name string) time.Duration { return plays.Duration(options.Get(name)) }
	if late := option("late"); late > 0 {
		v.Unread, v.During = 1, Span{v.busy, v.busy + late}
		v.busy += late
	}
	size := max(plays.Number(options.Get("size")), 6)
	const head = 117
	switch each, pause := option("each"), option("pause"); {
	case each > 0:
		v.respond(option("think"), head+size)
		for range plays.Number(options.Get("count")) - 1 {
			v.respond(each, size)
		}
		v.respond(each, 5)
	case pause > 0:
		v.respond(option("think"), head+size/2)
		v.respond(pause, size/2)
	default:
		v.respond(option("think"), head+size)
	}
}

// respond sends bytes after a time.
func (v *visit) respond(after time.Duration, bytes int) {
	if v.busy >= plays.Forever {
		return
	}
	v.busy += after
	v.Moves = append(v.Moves, Move{v.busy, -bytes})
	if bytes > 4<<20 {
		v.full = v.busy
	}
}
