package observe

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/letgo"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// settings is an empty SETTINGS frame, the beginning of a server of HTTP/2.
const settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// texts are what servers send.
var texts = map[string]string{
	"settings": settings, "half": settings[:8],
	"http": "HTTP/1.1 400 Bad Request\r\n\r\n", "redis": "-ERR unknown command\r\n",
}

// answer does with a connection what the words say.
func answer(conn *net.TCPConn, words string) {
	for word := range strings.FieldsSeq(words) {
		switch word {
		case "slowly": // a byte after each step
			for i := range settings {
				<-stepped
				io.WriteString(conn, settings[i:i+1])
			}
		case "endlessly":
			for err := error(nil); err == nil; {
				_, err = conn.Write(make([]byte, 1000))
			}
		case "resets":
			conn.SetLinger(0)
			conn.Close()
		case "closes":
			conn.Close()
		default:
			io.WriteString(conn, texts[word])
		}
	}
}

// stepped receives after a step, if somebody waits for that.
var stepped = make(chan struct{})

// serving is a server, and on how many connections its answer is complete.
type serving struct {
	*net.TCPListener
	answered atomic.Int32
}

func (s *serving) at() netip.AddrPort { return s.Addr().(*net.TCPAddr).AddrPort() }

// server serves on an address: its answers are to the preface of HTTP/2, and to HTTP/1.
func server(address, answers string) *serving {
	l := &serving{TCPListener: testutil.Must(net.Listen("tcp", address)).(*net.TCPListener)}
	toHTTP2, toHTTP1, _ := strings.Cut(answers, ", ")
	go func() {
		for conn, err := l.AcceptTCP(); err == nil; conn, err = l.AcceptTCP() {
			go func() {
				read := bufio.NewReader(conn)
				line, _ := read.ReadString('\n')
				if strings.HasPrefix(line, "PROXY ") {
					line, _ = read.ReadString('\n')
				}
				if strings.HasPrefix(line, "PRI ") {
					answer(conn, toHTTP2)
				} else {
					answer(conn, toHTTP1)
				}
				l.answered.Add(1)
				io.Copy(io.Discard, read)
			}()
		}
	}()
	return l
}

// asked returns what is found out about a server, and how long the question has waited for what did not
// come. The time that the server takes to answer does not count.
func asked(t *testing.T, at netip.AddrPort, l *serving) (found string, waited time.Duration) {
	o := &Observer{scope: scope.Scope{Method: scope.Namespace}, source: source{dump: new(sockdiag.Lister).Dump}}
	s := &Sampler{cfg: Config{Own: health.NewConns()}, observer: o}
	q := &question{server: &letgo.Server{At: at}}
	began, awaited := time.Now(), int32(1)
	now := began
	for !s.step(q, now) {
		select {
		case stepped <- struct{}{}:
		default:
		}
		if q.talk == nil { // another begins
			awaited++
			continue
		}
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(q.talk.FD), Events: unix.POLLIN}}, 2)
		if n == 0 && l.answered.Load() >= awaited {
			now = now.Add(answerTime / 50)
		}
	}
	if open := s.cfg.Own.Since(nil, time.Now().Add(time.Hour)); len(open) > 0 {
		t.Errorf("connections are left: %v", open)
	}
	return strings.Join(tables.Differing(letgo.Answer{}, q.found), " "), now.Sub(began)
}

// TestQuestion: what is found out about servers, and within which time, whatever they answer.
func TestQuestion(t *testing.T) {
	before := testutil.LowestFree()
	for _, c := range tables.Rows(`
		# answers to HTTP/2, and to HTTP/1 | found | waits | the server's address
		settings, closes           | HTTP2=true Alone=true |  | 127.0.0.1
		settings, closes           | HTTP2=true Alone=true |  | ::1
		settings, closes           | HTTP2=true Alone=true |  | 127.0.0.9
		settings, resets           | HTTP2=true Alone=true |  | 127.0.0.1
		settings, settings         | HTTP2=true Alone=true |  | 127.0.0.1
		settings, redis            | HTTP2=true Alone=true |  | 127.0.0.1
		settings, http             | HTTP2=true HTTP1=true |  | 127.0.0.1
		settings, never            | HTTP2=true | yes | 127.0.0.1
		slowly, closes             | HTTP2=true Alone=true |  | 127.0.0.1
		settings endlessly, closes | HTTP2=true Alone=true |  | 127.0.0.1
		endlessly, closes          | Else="\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" |  | 127.0.0.1
		half, closes               | Else="\x00\x00\x00\x04\x00\x00\x00\x00" | yes | 127.0.0.1
		http, http                 | Else="HTTP/1.1 400 Bad Request" |  | 127.0.0.1
		redis, closes              | Else="-ERR unknown command\r\n" |  | 127.0.0.1
		closes, closes             | Else=closes the connection |  | 127.0.0.1
		resets, closes             | Else=connection reset by peer |  | 127.0.0.1
		never, closes              | Else=no answer | yes | 127.0.0.1
	`) {
		l := server(net.JoinHostPort(c[3], "0"), c[0])
		found, waited := asked(t, l.at(), l)
		l.Close()
		if found != c[1] || (waited > answerTime) != (c[2] == "yes") || waited > answerTime*3/2 {
			t.Errorf("%s: %s, want %s; waits %v", c[0], found, c[1], waited)
		}
	}
	testutil.Eventually(t, "descriptors are closed", func() bool { return testutil.LowestFree() <= before })
}

// TestHoldOver: when the hold is over no server is asked, and a question that waits ends at once.
func TestHoldOver(t *testing.T) {
	l := server("127.0.0.1:0", "never, never")
	defer l.Close()
	s := &Sampler{cfg: Config{Own: health.NewConns()}}
	q := &question{server: &letgo.Server{At: l.at()}}
	now := time.Now()
	if s.step(q, now) || s.step(q, now.Add(answerTime)) {
		t.Error("the question does not wait")
	}
	s.slowed.Store(true)
	if !s.step(q, now) || q.found.Else == "" {
		t.Errorf("the question waits: %+v", q.found)
	}
}

// TestRelay: a proxy that copies bytes is found, with a header of the PROXY protocol too, and one that speaks
// by itself is none, nor is a server that is a client of others.
func TestRelay(t *testing.T) {
	for _, header := range []string{"", "PROXY TCP4 10.0.0.7 10.0.0.8 4000 80\r\n"} {
		l, behind := testutil.Must(net.Listen("tcp", "127.0.0.1:0")), server("127.0.0.1:0", "settings, closes")
		go func() {
			for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
				next := testutil.Must(net.Dial("tcp", behind.Addr().String()))
				io.WriteString(next, header)
				go func() { io.Copy(next, conn); next.Close() }()
				go func() { io.Copy(conn, next); conn.Close() }()
			}
		}()
		found, _ := asked(t, netip.MustParseAddrPort(l.Addr().String()), behind)
		if found != "HTTP2=true Alone=true Relay=true" {
			t.Errorf("a relay that sends %q: %s", header, found)
		}
		l.Close()
		behind.Close()
	}
	l := server("127.0.0.1:0", "settings, closes")
	defer l.Close()
	other := testutil.Must(net.Dial("tcp", l.Addr().String()))
	defer other.Close()
	fmt.Fprintf(other, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n%s%s", settings, "\x00\x00\x00\x04\x01\x00\x00\x00\x00")
	io.ReadFull(other, make([]byte, len(settings)))
	testutil.Eventually(t, "answered", func() bool { return l.answered.CompareAndSwap(1, 0) })
	if found, _ := asked(t, l.at(), l); found != "HTTP2=true Alone=true" {
		t.Errorf("beside another client: %s", found)
	}
}
