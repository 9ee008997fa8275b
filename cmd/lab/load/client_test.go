package load

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

const whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// TestKinds: each end of a request has a kind, and no request is sent
// twice.
func TestKinds(t *testing.T) {
	for want, serve := range map[Kind]func(*net.TCPConn){
		Answered: func(c *net.TCPConn) { io.WriteString(c, whole) },
		Status5:  func(c *net.TCPConn) { io.WriteString(c, "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n") },
		Other:    func(c *net.TCPConn) { io.WriteString(c, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n") },
		Cut:      func(c *net.TCPConn) { io.WriteString(c, whole[:len(whole)-1]) },
		Reset:    func(c *net.TCPConn) { c.SetLinger(0) },
		Timeout:  func(*net.TCPConn) { time.Sleep(time.Second) },
	} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			for _, body := range []string{"", "duck"} {
				for _, keep := range []bool{false, true} {
					addr, requests := serveEach(t, serve)
					c := &Client{Addr: addr, Keep: keep}
					if got := c.HTTP("/", body, time.Now().Add(500*time.Millisecond)); got != want {
						t.Errorf("kind %q, want %q", got, want)
					}
					if n := len(requests); n != 1 {
						t.Errorf("%d requests, want 1", n)
					}
					c.Close()
				}
			}
		})
	}
}

// TestBodies: the size of a body is the answer's length, its chunks, or what comes before the
// end.
func TestBodies(t *testing.T) {
	for text, want := range map[string]Answer{
		whole: {200, 2, true},
		"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\nok":                          {200, 2, false},
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nA\r\n0123456789\r\n0\r\n\r\n": {200, 12, true},
		"HTTP/1.1 503 No\r\n\r\nnot now": {503, 7, false},
	} {
		addr, _ := serveEach(t, func(c *net.TCPConn) { io.WriteString(c, text) })
		conn, err := Dial(addr, time.Now().Add(5*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := conn.HTTP("/", "duck", true); got != want || err != nil {
			t.Errorf("%q is %+v, %v, want %+v", text, got, err, want)
		}
		conn.Close()
	}
}

func TestRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	c := &Client{Addr: listener.Addr().String()}
	if got := c.HTTP("/", "", time.Now().Add(time.Second)); got != Refused {
		t.Errorf("kind %q, want %q", got, Refused)
	}
	_, err = Dial(c.Addr, time.Unix(1, 0))
	if got := KindOf(0, err); got != Timeout {
		t.Errorf("kind of %v is %q, want %q", err, got, Timeout)
	}
}

// TestKeep: a connection is used again, or not.
func TestKeep(t *testing.T) {
	for keep, want := range map[bool]int{true: 1, false: 3} {
		addr, conns := serve(t, func() {})
		c := &Client{Addr: addr, Keep: keep, Ports: true}
		request(t, c, 3)
		if len(conns) != want {
			t.Errorf("keep %v: %d connections, want %d", keep, len(conns), want)
		}
		c.Close()
	}
}

// TestConns: a pool opens a connection for each request until the pool is full, and then
// uses the connections in turn. A closed connection is replaced.
func TestConns(t *testing.T) {
	const size = 3
	addr, conns := serve(t, func() {})
	picked := 0
	c := &Client{Keep: true, Conns: size, Pick: func() string { picked++; return addr }}
	defer c.Close()
	request(t, c, 4*size)
	if len(conns) != size || len(c.idle) != size {
		t.Fatalf("%d connections, %d idle, want %d", len(conns), len(c.idle), size)
	}
	(<-conns).Close()
	awaitGone(t, c)
	request(t, c, 4*size)
	if len(conns) != size || len(c.idle) != size || picked != size+1 {
		t.Errorf("%d connections, %d idle, want %d; %d opened, want %d", len(conns), len(c.idle), size, picked, size+1)
	}
}

// TestFullPool: a request waits for a connection of the pool until the deadline.
func TestFullPool(t *testing.T) {
	requested, release := make(chan bool), make(chan bool)
	addr, conns := serve(t, func() {
		requested <- true
		<-release
	})
	c := &Client{Addr: addr, Keep: true, Conns: 1}
	defer c.Close()
	first := make(chan Kind)
	go func() { first <- c.HTTP("/", "duck", time.Now().Add(5*time.Second)) }()
	<-requested
	if got := c.HTTP("/", "duck", time.Now().Add(20*time.Millisecond)); got != Timeout {
		t.Errorf("the kind of the request that waits is %q, want %q", got, Timeout)
	}
	close(release)
	if got := <-first; got != Answered {
		t.Error(got)
	}
	if len(conns) > 1 {
		t.Error("a second connection was opened")
	}
}

// TestGone: a connection closed by the server is not used again.
func TestGone(t *testing.T) {
	addr, requests := serveEach(t, func(c *net.TCPConn) { io.WriteString(c, whole) })
	c := &Client{Addr: addr, Keep: true}
	for n := 1; n < 4; n++ {
		request(t, c, 1)
		if len(requests) != n {
			t.Fatalf("%d connections, want %d", len(requests), n)
		}
		awaitGone(t, c)
	}
}

// request makes so many requests.
func request(t *testing.T, c *Client, n int) {
	t.Helper()
	for range n {
		if got := c.HTTP("/", "duck", time.Now().Add(5*time.Second)); got != Answered {
			t.Fatal(got)
		}
	}
}

// awaitGone waits until a connection that the server has closed looks so.
func awaitGone(t *testing.T, c *Client) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !c.idle[0].Gone(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a closed connection looks open")
		}
	}
}

// serve serves HTTP, and sends the connections.
func serve(t *testing.T, do func()) (addr string, conns chan net.Conn) {
	conns = make(chan net.Conn, 10)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { do() }))
	s.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns <- conn
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), conns
}

// serveEach reads a request from each connection, does serve, and closes.
func serveEach(t *testing.T, serve func(*net.TCPConn)) (addr string, requests chan bool) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	requests = make(chan bool, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				io.Copy(io.Discard, r.Body)
			}
			requests <- true
			serve(conn.(*net.TCPConn))
			conn.Close()
		}
	}()
	return listener.Addr().String(), requests
}
