package letgo

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
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
				LastReceived: 50 * ms, LastSent: 20 * ms, LastAcked: 20 * ms,
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
	w.Update(w.ledger.End(ledger.Rest{}), noneNewFor)
}

// send sends GOAWAY on the first connection, where that is the moment.
func (w *http2World) send(now *tcp.Socket, after time.Duration) bool {
	for _, k := range w.ToNotify() {
		if k.Cookie == now.Cookie && w.MayNotify(k, now) {
			w.NoteNotified(k, now, after)
			return true
		}
	}
	return false
}

// TestSpoken: what becomes of the first connection on which GOAWAY was sent, 10 ms after a sample,
// tells what is spoken on the port.
func TestSpoken(t *testing.T) {
	for _, c := range tables.Rows(`
		# name | received and sent in these 10 ms | how long after GOAWAY it ended; "-": it is open, and what is received and sent in the next 75 ms | sent since, lost | what is spoken
		a call is answered, and the client leaves    | 300 0  | 25ms fin | 222 0  | HTTP/2
		with a WINDOW_UPDATE and a PING before       | 300 30 | 25ms fin | 222 0  | HTTP/2
		and an ACK of a PING that is lost            | 300 0  | 25ms rst | 222 17 | HTTP/2
		far away                                     | 300 0  | 90ms fin | 222 0 rtt=60ms | not known
		answered before a client has read the frame  | 300 0  | 5ms fin  | 222 0  | not known
		an idle client leaves                        | 0 0    | 25ms fin | 0 0    | not known
		a small call was answered before             | 300 36 | 25ms fin | 0 0    | not known
		only a PING was received                     | 17 0   | 25ms fin | 0 0    | not known
		the client goes on with other calls          | 300 0  | - 0 222  | 222 0  | HTTP/2
		and sends a message                          | 300 0  | - 300 222 | 222 0 | not known
		and has a large answer meanwhile             | 300 0  | - 300 4000 | 222 0 | HTTP/2
		the client stays, and sends a PING           | 300 0  | - 17 17  | 222 0  | HTTP/2
		it stays, and is silent                      | 300 0  | - 0 0    | 222 0  | not known
		a stream goes on                             | 0 0    | - 0 222  | 222 0  | not known
		and the client sends a WINDOW_UPDATE         | 0 0    | - 13 222 | 222 0  | HTTP/2
		it waits for more, and leaves                | 300 0  | 400ms fin | 222 0 | not known
		a client of HTTP/1.1 leaves                  | 300 0  | 25ms rst | 222 222 | another
		the server closes without an answer          | 300 0  | 25ms fin | 0 0    | another
		it leaves by a reset, and takes the answer   | 300 0  | 25ms rst | 222 0  | not known
		an idle client leaves by a reset             | 0 0    | 25ms rst | 0 0    | not known
		a client of TLS leaves, and an alert is lost | 300 0  | 25ms rst | 24 24  | another
	`) {
		t.Run(c[0], func(t *testing.T) {
			w := newHTTP2World()
			w.sample(2*time.Second, 2*time.Second)
			w.sample(3*time.Second, 3*time.Second)
			conn := &w.conns[0]
			var in, out uint64
			fmt.Sscan(c[1], &in, &out)
			now := *conn
			now.Info.Received += in
			now.Info.Sent += out
			now.Info.Acked += out
			if !w.send(&now, 10*ms) {
				t.Fatal("nothing is sent")
			}
			if w.send(&w.conns[1], 10*ms) {
				t.Fatal("sent on a second connection")
			}
			var ended, end string
			var sent, lost uint64
			fmt.Sscan(c[2], &ended, &end)
			var rtt string
			fmt.Sscan(c[3], &sent, &lost, &rtt)
			conn.Info = now.Info
			conn.Info.Sent += uint64(len(Goaway)) + sent
			conn.Info.Acked += uint64(len(Goaway)) + sent - lost
			conn.Info.Segments += 2
			conn.Info.SentSegments += 2
			conn.Info.LastReceived, conn.Info.LastSent, conn.Info.LastAcked = 30*ms, 0, 0
			if rtt != "" {
				conn.Info.RTT = 60 * ms
			}
			if ended == "-" {
				w.sample(3025*ms, 3025*ms)
				fmt.Sscan(c[2], &end, &in, &out)
				conn.Info.Received += in
				conn.Info.Sent += out
				conn.Info.Acked += out
				w.sample(3100*ms, 3100*ms)
				w.sample(4100*ms, 4100*ms)
			} else {
				after, _ := time.ParseDuration(ended)
				conn.Info.LastReceived, conn.Info.LastSent = after+5*ms, max(0, after-100*ms)
				if end == "fin" {
					conn.Info.Acked++
				}
				event := *conn
				event.State = tcp.Close
				conn.State = tcp.Close
				w.sample(3010*ms+after, 3*time.Second, &event)
			}
			p := w.spoken[80]
			got := map[spoken]string{{isHTTP2: true}: "HTTP/2", {isOther: true}: "another", {}: "not known"}[spoken{p.isHTTP2, p.isOther, nil}]
			if got != c[4] {
				t.Errorf("%s, want %s", got, c[4])
			}
			if may := len(w.ToNotify()) > 0; may != (got != "another") {
				t.Errorf("GOAWAY may be sent on other connections: %v", may)
			}
			if others := len(w.NotHTTP2()); (others > 0) != (got == "another") {
				t.Errorf("%d ports are reported", others)
			}
		})
	}
}

// TestMoment: GOAWAY is sent between two frames, once nothing new has come for long enough.
func TestMoment(t *testing.T) {
	for _, c := range tables.Rows(`
		# name | nothing new for | a call waits, or what else is so | sent
		a call waits                          | 1s    |             | yes
		a connection has come lately          | 990ms |             | no
		the server reads                      | 1s    | unread      | no
		a frame is on its way                 | 1s    | unsent      | no
		the server has just sent              | 1s    | sent        | no
		and has never been silent             | 1s    | sent busy   | yes
		the client has left                   | 1s    | left        | no
		no call waits                         | 1s    | idle        | no
		and none has for half a second        | 1s    | idle long   | yes
		no call waits on a port that is known | 1s    | idle known  | yes
		another is spoken                     | 1s    | other       | no
		the client came back once             | 1s    | back        | no
	`) {
		is := func(word string) bool { return strings.Contains(c[2], word) }
		w := newHTTP2World()
		w.sample(2*time.Second, 0)
		noneNewFor, _ := time.ParseDuration(c[1])
		w.sample(3*time.Second, noneNewFor)
		now := w.conns[0]
		now.Info.Received += 300
		w.spoken[80].isHTTP2, w.spoken[80].isOther = is("known"), is("other")
		switch {
		case is("unread"):
			now.Unread = 1
		case is("unsent"):
			now.Unsent = 1
		case is("busy"):
			now.Info.LastSent, w.wantedSince = 0, w.wantedSince-silentFor
		case is("sent"):
			now.Info.LastSent = 4 * ms
		case is("left"):
			now.State = tcp.CloseWait
		case is("idle"):
			now.Info.Received -= 300
		case is("back"):
			w.clientAt(now.Remote.Addr()).back = 2
		}
		if is("long") {
			w.wantedSince -= awaitFor
		}
		if got := w.send(&now, 10*ms); got != (c[3] == "yes") {
			t.Errorf("%s: sent: %v", c[0], got)
		}
	}
}

// TestCameBack: a client that connects again is asked again, later.
func TestCameBack(t *testing.T) {
	w := newHTTP2World()
	w.sample(2*time.Second, 2*time.Second)
	w.spokenOn(w.http2[0]).isHTTP2 = true
	if !w.send(&w.conns[0], 10*ms) || !w.send(&w.conns[1], 11*ms) || w.send(&w.conns[0], 12*ms) {
		t.Fatal("GOAWAY is not sent on each connection once")
	}
	w.conns[0].Cookie, w.conns[0].Remote = 3, netip.MustParseAddrPort("10.0.0.7:1003")
	w.sample(3*time.Second, 0)
	w.sample(3900*ms, 900*ms)
	if w.Notifying() || w.send(&w.conns[0], 10*ms) {
		t.Error("asked again after less than a second")
	}
	w.sample(4*time.Second, time.Second)
	if !w.Notifying() || !w.send(&w.conns[0], 10*ms) {
		t.Error("not asked again after a second")
	}
	if got, want := w.Figures(), (Figures{Notified: 3, CameBack: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	w.sample(10*time.Second, 5*time.Second)
	if w.Notifying() {
		t.Error("samples are frequent, and nobody is to be asked")
	}
}

// TestMissed: a connection that one sample has missed may be sent GOAWAY, and only once.
func TestMissed(t *testing.T) {
	w := newHTTP2World()
	w.sample(2*time.Second, 2*time.Second)
	w.spokenOn(w.http2[0]).isHTTP2 = true
	if !w.send(&w.conns[0], 10*ms) {
		t.Fatal("nothing is sent")
	}
	conns := w.conns
	w.conns[0].State, w.conns[1].State = tcp.Close, tcp.Close
	w.sample(2250*ms, 2250*ms)
	w.conns = conns
	w.sample(2500*ms, 2500*ms)
	if w.send(&w.conns[0], 10*ms) || !w.send(&w.conns[1], 10*ms) {
		t.Error("not sent on the connection on which it was not")
	}
}
