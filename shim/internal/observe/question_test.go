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

// answers are what a server does with a connection whose first bytes it has read.
var answers = map[string]func(conn net.Conn){
	"settings": func(conn net.Conn) { io.WriteString(conn, settings) },
	"one byte a step": func(conn net.Conn) {
		for _, b := range []byte(settings) {
			<-stepped
			conn.Write([]byte{b})
		}
	},
	"endlessly": func(conn net.Conn) {
		for _, err := io.WriteString(conn, settings); err == nil; _, err = conn.Write(make([]byte, 1000)) {
		}
	},
	"endless zeros": func(conn net.Conn) {
		for _, err := conn.Write(make([]byte, 1000)); err == nil; _, err = conn.Write(make([]byte, 1000)) {
		}
	},
	"half":   func(conn net.Conn) { io.WriteString(conn, settings[:8]) },
	"http":   func(conn net.Conn) { io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n") },
	"redis":  func(conn net.Conn) { io.WriteString(conn, "-ERR unknown command\r\n") },
	"closes": func(conn net.Conn) { conn.Close() },
	"resets": func(conn net.Conn) { conn.(*net.TCPConn).SetLinger(0); conn.Close() },
	"never":  func(net.Conn) {},
}

// stepped receives after a step, if somebody waits for that.
var stepped = make(chan struct{})

// serving is a server, and on how many connections its answer is complete.
type serving struct {
	net.Listener
	answered atomic.Int32
}

// server serves on an address: its first word is what it answers to the preface of HTTP/2, its second to
// HTTP/1.
func server(address string, words []string) *serving {
	l := &serving{Listener: testutil.Must(net.Listen("tcp", address))}
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			go func() {
				read := bufio.NewReader(conn)
				line, _ := read.ReadString('\n')
				if strings.HasPrefix(line, "PROXY ") {
					line, _ = read.ReadString('\n')
				}
				answer := words[0]
				if !strings.HasPrefix(line, "PRI ") {
					answer = words[1]
				}
				answers[answer](conn)
				l.answered.Add(1)
				io.Copy(io.Discard, read)
			}()
		}
	}()
	return l
}

// asked returns what a server has answered, and how long the question has waited for what did not come. The
// time that a server takes does not count; without one nothing comes.
func asked(t *testing.T, at netip.AddrPort, o *Observer, l *serving) (letgo.Answer, time.Duration) {
	s := &Sampler{cfg: Config{Own: health.NewConns()}, observer: o}
	q := &question{server: &letgo.Server{At: at}}
	began, before := time.Now(), int32(0)
	if l != nil {
		before = l.answered.Load()
	}
	now := began
	for !s.step(q, now) {
		select {
		case stepped <- struct{}{}:
		default:
		}
		awaited := before + 1
		if q.HTTP2 {
			awaited++
		}
		n := 0
		if q.talk != nil {
			n, _ = unix.Poll([]unix.PollFd{{Fd: int32(q.talk.FD), Events: unix.POLLIN}}, 2)
		}
		if n == 0 && (l == nil || l.answered.Load() >= awaited) {
			now = now.Add(answerTime / 50)
		}
	}
	if open := s.cfg.Own.Since(nil, time.Now().Add(time.Hour)); len(open) > 0 {
		t.Errorf("connections are left: %v", open)
	}
	return q.Answer, now.Sub(began)
}

// TestQuestion: what is found out about servers, and within which time, whatever they answer.
func TestQuestion(t *testing.T) {
	before := testutil.LowestFree()
	for _, c := range tables.Rows(`
		# answers to HTTP/2, and to HTTP/1 | found | waits
		settings, closes           | HTTP/2 alone |
		settings, resets           | HTTP/2 alone |
		settings, settings         | HTTP/2 alone |
		settings, redis            | HTTP/2 alone |
		settings, http             | HTTP/2, HTTP/1 |
		settings, never            | HTTP/2 | yes
		one byte a step, closes    | HTTP/2 alone |
		endlessly, closes          | HTTP/2 alone |
		endless zeros, closes      | "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" |
		half, closes               | "\x00\x00\x00\x04\x00\x00\x00\x00" | yes
		http, http                 | "HTTP/1.1 400 Bad Request" |
		redis, closes              | "-ERR unknown command\r\n" |
		closes, closes             | closes the connection |
		resets, closes             | connection reset by peer |
		never, closes              | no answer | yes
	`) {
		l := server("127.0.0.1:0", strings.Split(c[0], ", "))
		answer, took := asked(t, l.Addr().(*net.TCPAddr).AddrPort(), openObserver(t), l)
		l.Close()
		if got := words(answer); got != c[1] || (took > answerTime) != (c[2] == "yes") || took > answerTime*3/2 {
			t.Errorf("%s: %s, want %s; waits %v", c[0], got, c[1], took)
		}
	}
	testutil.Eventually(t, "descriptors are closed", func() bool { return testutil.LowestFree() <= before })
}

// words returns an answer in words.
func words(a letgo.Answer) string {
	if !a.HTTP2 {
		return a.Else
	}
	text := "HTTP/2"
	for _, more := range []struct {
		is   bool
		text string
	}{{a.Alone, " alone"}, {a.HTTP1, ", HTTP/1"}, {a.Relay, ", relayed"}} {
		if more.is {
			text += more.text
		}
	}
	return text
}

// openObserver returns an Observer that lists connections.
func openObserver(t *testing.T) *Observer {
	o := &Observer{scope: scope.Scope{Method: scope.Namespace}}
	o.source.connect = func() (dumper, error) { return sockdiag.Open() }
	o.source.open()
	t.Cleanup(func() { o.source.conn.Close() })
	return o
}

// TestHoldOver: when the hold is over no server is asked, and a question that waits ends at once.
func TestHoldOver(t *testing.T) {
	l := server("127.0.0.1:0", []string{"never", "never"})
	defer l.Close()
	s := &Sampler{cfg: Config{Own: health.NewConns()}, observer: openObserver(t)}
	q := &question{server: &letgo.Server{At: l.Addr().(*net.TCPAddr).AddrPort()}}
	now := time.Now()
	if s.step(q, now) || s.step(q, now.Add(answerTime)) {
		t.Error("the question does not wait")
	}
	s.slowed.Store(true)
	if !s.step(q, now) || q.Else == "" {
		t.Errorf("the question waits: %+v", q.Answer)
	}
}

// TestUnreachable: nothing listens, an address that is not ours, nobody accepts, and addresses of both kinds.
func TestUnreachable(t *testing.T) {
	gone := server("127.0.0.1:0", nil)
	gone.Close()
	full := testutil.Must(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0))
	defer unix.Close(full)
	unix.Bind(full, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: 7999})
	unix.Listen(full, 0)
	for range 3 {
		conn, err := net.DialTimeout("tcp", "127.0.0.1:7999", 50*time.Millisecond)
		if err == nil {
			defer conn.Close()
		}
	}
	for at, want := range map[string]string{
		gone.Addr().String(): "connection refused", "192.0.2.1:80": "cannot assign requested address", "127.0.0.1:7999": "no answer",
	} {
		if answer, _ := asked(t, netip.MustParseAddrPort(at), openObserver(t), nil); words(answer) != want {
			t.Errorf("%s: %s, want %s", at, words(answer), want)
		}
	}
	for _, address := range []string{"[::1]:0", "127.0.0.9:0", "0.0.0.0:0"} {
		l := server(address, []string{"settings", "closes"})
		at := l.Addr().(*net.TCPAddr).AddrPort()
		if at.Addr().IsUnspecified() {
			at = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.7"), at.Port())
		}
		if answer, _ := asked(t, at, openObserver(t), l); words(answer) != "HTTP/2 alone" {
			t.Errorf("%s: %s", address, words(answer))
		}
		l.Close()
	}
}

// TestRelay: a proxy that copies bytes is found, with a header of the PROXY protocol too, and one that speaks
// by itself is none, nor is a server that is a client of others.
func TestRelay(t *testing.T) {
	behind := server("127.0.0.1:0", []string{"settings", "closes"})
	defer behind.Close()
	for _, header := range []string{"", "PROXY TCP4 10.0.0.7 10.0.0.8 4000 80\r\n"} {
		l := testutil.Must(net.Listen("tcp", "127.0.0.1:0"))
		go func() {
			for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
				next := testutil.Must(net.Dial("tcp", behind.Addr().String()))
				io.WriteString(next, header)
				go func() { io.Copy(next, conn); next.Close() }()
				go func() { io.Copy(conn, next); conn.Close() }()
			}
		}()
		answer, _ := asked(t, l.Addr().(*net.TCPAddr).AddrPort(), openObserver(t), behind)
		if got, want := words(answer), "HTTP/2 alone, relayed"; got != want {
			t.Errorf("a relay that sends %q: %s, want %s", header, got, want)
		}
		l.Close()
	}
	other := testutil.Must(net.Dial("tcp", behind.Addr().String()))
	defer other.Close()
	fmt.Fprintf(other, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n%s%s", settings, "\x00\x00\x00\x04\x01\x00\x00\x00\x00")
	io.ReadFull(other, make([]byte, len(settings)))
	if answer, _ := asked(t, behind.Addr().(*net.TCPAddr).AddrPort(), openObserver(t), behind); words(answer) != "HTTP/2 alone" {
		t.Errorf("beside another client: %s", words(answer))
	}
}
