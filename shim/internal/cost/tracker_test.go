package cost

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// kernel is the sockets and counters of a network namespace, as a ledger is shown them.
type kernel struct {
	*Tracker
	ledger   *ledger.Ledger
	traffic  *traffic.Tracker
	now      time.Time
	sockets  []tcp.Socket
	closed   []func() // which report the sockets closed since the latest sample
	probes   []traffic.Pattern
	rest     ledger.Rest
	returned int // ports
}

const every = 50 * time.Millisecond

var (
	start  = time.Unix(1_000_000_000, 0)
	client = netip.MustParseAddr("10.0.0.1")
	local  = netip.MustParseAddr("10.0.0.2")
)

// infos are what the kernel knows of connections: with a request in flight, one that was answered, one of
// which the kernel does not say, a request to a server behind, a client that was refused; when a connection
// has sent more, when another request has come, and of a new connection, when a small request has come.
var infos = map[string]string{
	"waiting":  "LastReceived=5ms LastSent=500ms LastAcked=500ms",
	"answered": "LastReceived=520ms LastSent=500ms LastAcked=500ms",
	"tied":     "LastReceived=500ms LastSent=500ms LastAcked=500ms",
	"asking":   "LastReceived=500ms LastSent=5ms LastAcked=5ms",
	"refused":  "LastReceived=1000s LastSent=1000s LastAcked=1000s",
	"send":     "LastSent=1ms SentSegments=300",
	"ask":      "LastReceived=1ms Segments=300",
	"first":    "Received=18 Segments=1 Sent=0 Acked=0 SentSegments=0 LastReceived=1ms LastSent=250ms LastAcked=0s",
}

// inform changes what the kernel knows of a connection.
func inform(s *tcp.Socket, word string) {
	for field := range strings.FieldsSeq(infos[word]) {
		name, value, _ := strings.Cut(field, "=")
		if !tables.Set(&s.Info, name, value) {
			panic(name)
		}
	}
}

// play has the steps happen, and takes a sample before and twelve afterwards.
func play(steps string) *kernel {
	cfg := traffic.Config{QuietFor: 4 * time.Second, MaxSilence: 30 * time.Second, Poll: LateEvent - every}
	k := &kernel{Tracker: New(), ledger: ledger.New(cfg.Ledger(start)), traffic: traffic.New(cfg), now: start}
	k.rest.Resets = 1000
	for step := range strings.SplitSeq("listen 80; sample 1; "+steps+"; sample 12", "; ") {
		k.do(step)
	}
	return k
}

// do has a step happen:
//
//	listen PORT [COOKIE]            a listener; its cookie is the port, if there is only one
//	connect N AGES [PORT] [WORD]    an accepted connection, or one that is "unaccepted", or has much to "send"
//	send N, ask N                   a connection has sent more, or another request has come
//	token MILLISECONDS N...         connections have sent more, the last byte so long before the next sample or event
//	first N                         a connection is new, and a small request has come
//	echo MILLISECONDS BYTES N       the program has sent a few bytes, and then, so long ago, the client
//	close N                         the program closes a connection, whose client is far away
//	destroy COOKIE..., abort N...   sockets end with an event each; the program resets those aborted
//	leave N...                      as destroy, after both ends have closed
//	lose COOKIE...                  sockets end without events
//	keep N STATE [PORT], forget     what the kernel keeps of connections that the server has closed
//	resets N                        the counter goes on
//	sample N, pause MILLISECONDS    so many samples; time in which none is taken
//	amid COOKIE...                  a sample that lists sockets that end, with events, before it does
//	frozen COOKIE...                one that lists nothing, and is frozen for two seconds before they end
//	probes, missed, uncounted       a health probe each second; lost events; no counters
func (k *kernel) do(step string) {
	words := strings.Fields(step)
	var numbers []int
	for _, word := range words[1:] {
		if n, err := strconv.Atoi(word); err == nil {
			numbers = append(numbers, n)
		}
	}
	n := append(numbers, 0)[0]
	of := func(cookie int) *tcp.Socket {
		return &k.sockets[slices.IndexFunc(k.sockets, func(s tcp.Socket) bool { return int(s.Cookie) == cookie })]
	}
	const ms = time.Millisecond
	switch words[0] {
	case "listen":
		cookie := uint64(numbers[len(numbers)-1])
		k.sockets = append(k.sockets, tcp.Socket{State: tcp.Listen, Local: on(n), Cookie: cookie})
	case "connect":
		k.sockets = append(k.sockets, connection(words[2:], numbers))
	case "send", "ask", "first":
		inform(of(n), words[0])
	case "token":
		for _, cookie := range numbers[1:] {
			add(of(cookie), 0, 10)
			of(cookie).Info.LastSent = time.Duration(n) * ms
		}
	case "echo":
		s := of(numbers[2])
		add(s, uint64(numbers[1]), 4)
		s.Info.LastReceived, s.Info.LastSent = time.Duration(n)*ms, 250*ms
	case "close":
		of(n).State = tcp.FinWait1
	case "destroy", "abort", "lose", "leave":
		k.end(words[0], numbers)
	case "keep":
		s := connection([]string{"answered"}, numbers)
		s.State, s.Cookie, s.HasInfo = tcp.FinWait2, 1<<40, false
		if words[2] == "time-wait" {
			s.State = tcp.TimeWait
		}
		k.sockets = append(k.sockets, s)
	case "forget":
		k.end("lose", []int{1 << 40})
	case "resets":
		k.rest.Resets += uint64(n)
	case "sample":
		for range n {
			k.sample()
		}
	case "pause":
		k.now = k.now.Add(time.Duration(n) * ms)
	case "amid":
		k.sample(numbers...)
	case "frozen":
		k.ledger.Begin(k.now.Add(every))
		k.now = k.now.Add(2 * time.Second)
		k.finish(numbers)
	case "probes":
		k.probes = []traffic.Pattern{{Port: 80, Period: time.Second, Last: k.now}}
	case "missed":
		k.rest.MissedAt = k.now
	case "uncounted":
		k.rest.Uncounted = errors.New("no counters")
		k.rest.Resets = 0
	default:
		panic(step)
	}
}

// add adds bytes, each in a segment of their own, to what a connection has received and sent.
func add(s *tcp.Socket, in, out uint64) {
	s.Info.Received, s.Info.Segments = s.Info.Received+in, s.Info.Segments+uint32(min(in, 1))
	s.Info.Sent, s.Info.Acked, s.Info.SentSegments = s.Info.Sent+out, s.Info.Acked+out, s.Info.SentSegments+1
}

func on(port int) netip.AddrPort { return netip.AddrPortFrom(local, uint16(port)) }

// connection returns a connection with a cookie, perhaps to another port than 80.
func connection(words []string, numbers []int) tcp.Socket {
	cookie := numbers[0]
	port := append(numbers, 80)[1]
	s := tcp.Socket{
		State: tcp.Established, Local: on(port), Remote: netip.AddrPortFrom(client, uint16(cookie)),
		Cookie: uint64(cookie), Inode: uint32(cookie), HasInfo: true,
		Info: tcp.Info{Received: 100, Sent: 100, Acked: 100, Segments: 2, SentSegments: 2, PureACKs: 1},
	}
	inform(&s, words[0])
	switch words[len(words)-1] {
	case "unaccepted":
		s.Inode = 0
	case "send":
		s.Info.NotSent, s.Unsent = 1<<20, 1<<20
	}
	return s
}

// end ends sockets, a moment after the latest sample.
func (k *kernel) end(how string, cookies []int) {
	at := k.now.Add(10 * time.Millisecond)
	k.sockets = slices.DeleteFunc(k.sockets, func(s tcp.Socket) bool {
		switch {
		case !slices.Contains(cookies, int(s.Cookie)):
			return false
		case how == "lose":
			return true
		case s.State == tcp.Listen:
			s.Remote = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
		case how == "abort":
			s.Remote = netip.AddrPortFrom(client, 0)
			s.Info = tcp.Info{LastSent: s.Info.LastSent, LastAcked: s.Info.LastAcked, LastReceived: 1000 * time.Second}
		case how == "leave":
			s.Info.Acked++
		}
		s.State, s.Inode = tcp.Close, 0
		k.closed = append(k.closed, func() { k.ledger.Closed(&s, at, side(&s)) })
		return true
	})
}

func (k *kernel) sample(ending ...int) {
	k.now = k.now.Add(every)
	k.ledger.Begin(k.now)
	for _, s := range k.sockets {
		k.ledger.Observe(&s, side(&s))
	}
	k.finish(ending)
}

// finish ends a sample, after the end of sockets.
func (k *kernel) finish(ending []int) {
	k.end("destroy", ending)
	for _, report := range k.closed {
		report()
	}
	k.closed = nil
	k.rest.ReadAt = k.now
	sample := k.ledger.End(k.rest)
	seen := k.traffic.Judge(sample, 0)
	seen.Patterns = k.probes
	k.returned += len(k.Judge(sample, &seen).Returned)
}

// side returns whose a socket is: only low ports are followed.
func side(s *tcp.Socket) ledger.Side {
	if s.Local.Port() < 1000 {
		return ledger.Clients
	}
	return ledger.Ignored
}

// costs are a name, steps, and what the end of the server cost.
const costs = `
dies | connect 1 waiting; connect 2 answered; connect 3 tied; sample 1; destroy 80 1 2 3; keep 1 time-wait; resets 7 |
    1 cut, 7 refused
a long response | connect 1 answered send; sample 1; send 1; destroy 80 1; keep 1 fin-wait2 | 1 cut
and the server resets it | connect 1 answered send; sample 1; send 1; destroy 80; abort 1; resets 1 | 1 cut
drains, and is killed | connect 1 waiting; connect 2 waiting; sample 1; destroy 80; resets 2; sample 3;
    send 1; destroy 1; sample 20; destroy 2; keep 2 time-wait | 1 cut, 2 refused
a cut connection that is reset | connect 1 waiting; connect 2 waiting; sample 1; destroy 80 1 2; keep 1 fin-wait2;
    resets 1; sample 2; forget; resets 1 | 2 cut
a cut connection that the client closes | connect 1 waiting; sample 1; destroy 80 1; keep 1 time-wait; resets 1;
    sample 2; forget | 1 cut, 1 refused
a request since the sample | connect 1 answered; sample 1; ask 1; destroy 80 1; keep 1 fin-wait2 | 1 cut
never accepted | connect 1 waiting unaccepted; sample 1; destroy 80; abort 1; resets 1 | 0 cut, 1 refused
aborted after a shutdown | connect 1 waiting; close 1; sample 1; destroy 80; abort 1; resets 1 | 0 cut, 1 refused
aborted with a request | connect 1 waiting; sample 1; destroy 80; abort 1; resets 1 | 1 cut
connections to servers reset | connect 1 answered 5000; destroy 80; abort 1; resets 1 | 0 cut
clients of servers elsewhere refused | connect 1 refused 5000; destroy 80; abort 1; resets 1 | 0 cut, 1 refused
a server that resets | connect 1 answered; abort 1; resets 1; sample 250; connect 2 answered; connect 3 waiting;
    sample 1; connect 4 answered; abort 4; destroy 80 2 3; keep 3 time-wait; resets 1 | 1 cut
a server that resets what it has just answered | connect 1 waiting; sample 1; pause 250; send 1; abort 1;
    destroy 80; resets 1 | 0 cut
a client that has left | connect 1 tied; ask 1; sample 1; leave 1; destroy 80; resets 1 | 0 cut, 1 refused
a client that leaves | connect 1 waiting; sample 1; destroy 80; leave 1; keep 1 time-wait; resets 1 | 1 cut, 1 refused
a cut connection whose client closes later | connect 1 waiting; sample 1; destroy 80 1; keep 1 fin-wait2; sample 2;
    forget; keep 1 time-wait; sample 1; resets 1 | 1 cut, 1 refused
a proxy's request is answered late | connect 1 waiting; connect 2 asking 5000; sample 1; destroy 80 1 2;
    keep 1 time-wait; keep 2 fin-wait2 5000; sample 2; forget; resets 1 | 1 cut
a request to an ignored server | listen 5000; connect 1 asking 5000; sample 1; destroy 80 1; resets 1 | 0 cut, 1 refused
workers end first | connect 1 waiting; sample 1; destroy 1; keep 1 time-wait; sample 3; destroy 80 | 1 cut
long before | connect 1 waiting; sample 1; destroy 1; keep 1 time-wait; sample 6; destroy 80 | 0 cut
events are lost | connect 1 waiting; connect 2 answered; sample 1; lose 80 1 2; keep 1 time-wait; missed |
    1 cut, perhaps more
events are lost in a long pause | connect 1 waiting; sample 1; lose 80 1; keep 1 time-wait; pause 250 | 1 cut
another port still listens | listen 81; connect 1 waiting 81; connect 2 waiting; connect 3 answered 81; sample 1;
    destroy 80 1 2; keep 2 time-wait; resets 1 | 1 cut, 1 refused, 1 listening
returned | connect 1 waiting; sample 1; destroy 80 1; resets 5; sample 2; listen 80; sample 2;
    destroy 80; resets 2 | 0 cut, 2 refused, 1 returned
returned, and before the second end a proxy's request | destroy 80; sample 2; listen 80; sample 2;
    connect 2 asking 5000; sample 1; destroy 2; sample 3; destroy 80; sample 1; resets 1 | 0 cut, 1 returned
a health probe | probes; sample 1; destroy 80; sample 9; resets 2; sample 10; resets 1 | 0 cut, 2 refused, 1 probe
a scan | destroy 80; sample 1; resets 500 | 0 cut, 500 refused, at most
a scan before the end | resets 5; sample 2; destroy 80; resets 5 | 0 cut, 5 refused, at most
a scan long before | resets 5; sample 250; destroy 80; resets 5 | 0 cut, 5 refused
a busy server | connect 1 tied; connect 2 tied; connect 3 tied; connect 4 tied; connect 5 tied; sample 25;
    destroy 80 1 2 3 4 5; resets 24 | 0 cut, 24 refused
a server beside another that was away | listen 81; sample 1; destroy 81; connect 1 tied; sample 1; connect 2 tied;
    sample 1; connect 3 tied; sample 1; connect 4 tied; sample 1; connect 5 tied; sample 1; listen 81; sample 25;
    destroy 80; resets 24 | 0 cut, 24 refused, 5 open, 1 listening, 1 returned, at most
a stream dies | connect 1 answered; sample 1; token 20 1; sample 1; destroy 80 1; keep 1 time-wait |
    0 cut, 1 streams
a stream is complete | connect 1 answered; sample 1; token 20 1; sample 1; token 0 1; destroy 80 1; keep 1 time-wait |
    0 cut
streams die with the last byte of one | connect 1 answered; connect 2 answered; sample 1; token 20 1 2; sample 1;
    token 0 1; destroy 80 1 2; keep 1 time-wait | 0 cut, 2 streams
streams are complete, but for a moment | connect 1 answered; connect 2 answered; connect 3 answered; sample 1;
    token 20 1 2 3; sample 1; token 0 1 2; destroy 80 1 2 3; keep 1 time-wait | 0 cut
a stream ends before others | connect 1 answered; connect 2 answered; sample 1; token 20 1 2; sample 1;
    destroy 80; sample 2; token 20 1 2; destroy 1; keep 1 time-wait; sample 3; token 0 2 | 0 cut, 1 open
streams die, whose clients are far away | connect 1 answered; connect 2 answered; sample 1; token 20 1 2; sample 1;
    destroy 80; sample 30; token 20 1 2; close 1; close 2 | 0 cut, 2 open
and the clients know | connect 1 answered; connect 2 answered; sample 1; token 20 1 2; sample 1;
    destroy 80; sample 30; token 20 1 2; close 1; close 2; sample 1; destroy 1; keep 1 time-wait; sample 1; destroy 2 |
    0 cut, 2 streams
two processes die | connect 1 answered; connect 2 answered; sample 1; token 20 1 2; sample 1; destroy 80 1;
    sample 3; token 20 2; destroy 2; keep 1 time-wait | 0 cut, 2 streams
a WebSocket is closed | connect 1 answered; sample 1; echo 1 8 1; destroy 80 1; keep 1 time-wait | 0 cut
a small request waits | connect 1 answered; sample 1; echo 30 8 1; destroy 80 1; keep 1 time-wait | 1 cut
a first request, as small | connect 1 answered; first 1; destroy 80 1; keep 1 time-wait | 1 cut
a request has just come | connect 1 answered; sample 1; echo 1 80 1; destroy 80 1; keep 1 time-wait | 1 cut
a stream long before | connect 1 answered; sample 1; token 450 1; sample 1; destroy 80 1;
    keep 1 time-wait | 0 cut
a stream that the server resets | connect 1 answered; connect 2 answered; sample 1; token 20 1 2; sample 1;
    destroy 80; sample 1; abort 1; resets 1 | 0 cut, 1 streams, 1 open
a client leaves its stream | connect 1 answered; sample 1; token 20 1; sample 1; destroy 80; sample 1; leave 1 |
    0 cut
streams whose events are lost | connect 1 answered; connect 2 answered; sample 1; token 20 1 2; sample 1; lose 80 1 2;
    keep 1 time-wait; missed | 0 cut, 2 streams, perhaps more
without counters | uncounted; destroy 80 | 0 cut, uncounted
`

var zeros = regexp.MustCompile(", (0|false) [a-z ]+")

// TestCost: what is cut and refused by the end of a server.
func TestCost(t *testing.T) {
	for _, cells := range tables.Rows(costs) {
		k := play(cells[1])
		r := k.result
		cut, streams := r.Cut()
		got := fmt.Sprintf("%d cut, %d refused, %d streams, %d open, %d listening, %d returned, %d probe, %t perhaps more, "+
			"%t at most, %t uncounted", cut, r.Refused, streams, r.Open, len(r.Listening), k.returned, r.OfProbes,
			r.CutAtLeast, r.AtMost, r.Uncounted != nil)
		got = strings.ReplaceAll(zeros.ReplaceAllString(got, ""), "true ", "")
		if got != cells[2] || len(r.Ends) != 1 {
			t.Errorf("%s: %s; %+v", cells[0], got, r)
		}
	}
}

// TestTimes: a port ends when its last listener does, even amid a sample; a reset has the time of its sample,
// or of the end if that sample was frozen.
func TestTimes(t *testing.T) {
	for _, cells := range tables.Rows(`
		# steps | milliseconds to the end, and to the last reset, resets in each second
		listen 80 8080; sample 1; destroy 80; sample 12; destroy 8080; sample 30; resets 3 | 710 2250 [0 3]
		listen 80 8080; sample 1; destroy 80; sample 12; amid 8080; sample 30; resets 3    | 760 2300 [0 3]
		resets 3; frozen 80                                                                | 2060 2060 [3]
	`) {
		r := play(cells[0]).result
		ms := func(at time.Time) int64 { return at.Sub(start).Milliseconds() }
		if got := fmt.Sprint(ms(r.Ends[0].At), ms(r.LastRefused), r.PerSecond); got != cells[1] || len(r.Ends) != 1 {
			t.Errorf("%s: %s, want %s", cells[0], got, cells[1])
		}
	}
}
