package load

import (
	"bufio"
	"io"
	"net"
	"net/http"
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
		listener := listen(t)
		conns := make(chan bool, 10)
		go accept(listener, func(c *net.TCPConn) {
			conns <- true
			for in := bufio.NewReader(c); answer(c, in); {
			}
		})
		c := &Client{Addr: listener.Addr().String(), Keep: keep, Ports: true}
		for range 3 {
			if got := c.HTTP("/", "duck", time.Now().Add(5*time.Second)); got != Answered {
				t.Fatal(got)
			}
		}
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
	conns := make(chan *net.TCPConn, 10)
	listener := listen(t)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns <- conn.(*net.TCPConn)
			go func() {
				for in := bufio.NewReader(conn); answer(conn, in); {
				}
			}()
		}
	}()
	picked := 0
	c := &Client{Keep: true, Conns: size, Pick: func() string { picked++; return listener.Addr().String() }}
	defer c.Close()
	request := func(n int) {
		for range n {
			if got := c.HTTP("/", "duck", time.Now().Add(5*time.Second)); got != Answered {
				t.Fatal(got)
			}
		}
	}
	request(4 * size)
	if len(conns) != size || c.Idle() != size {
		t.Fatalf("%d connections, %d idle, want %d", len(conns), c.Idle(), size)
	}
	(<-conns).Close()
	for end := time.Now().Add(5 * time.Second); !c.idle[0].Gone(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a closed connection looks open")
		}
	}
	request(4 * size)
	if len(conns) != size || c.Idle() != size || picked != size+1 {
		t.Errorf("%d connections, %d idle, want %d; %d opened, want %d", len(conns), c.Idle(), size, picked, size+1)
	}
}

// TestFullPool: a request waits for a connection of the pool until the deadline.
func TestFullPool(t *testing.T) {
	release := make(chan bool)
	addr, requests := serveEach(t, func(c *net.TCPConn) {
		<-release
		io.WriteString(c, whole)
	})
	c := &Client{Addr: addr, Keep: true, Conns: 1}
	defer c.Close()
	first := make(chan Kind)
	go func() { first <- c.HTTP("/", "duck", time.Now().Add(5*time.Second)) }()
	<-requests
	if got := c.HTTP("/", "duck", time.Now().Add(20*time.Millisecond)); got != Timeout {
		t.Errorf("the kind of the request that waits is %q, want %q", got, Timeout)
	}
	close(release)
	if got := <-first; got != Answered {
		t.Error(got)
	}
	if len(requests) > 0 {
		t.Error("a second connection was opened")
	}
}

// answer answers a request, and reports whether a request came.
func answer(c net.Conn, in *bufio.Reader) bool {
	r, err := http.ReadRequest(in)
	if err != nil {
		return false
	}
	io.Copy(io.Discard, r.Body)
	io.WriteString(c, whole)
	return true
}

// TestGone: a connection closed by the server is not used again.
func TestGone(t *testing.T) {
	addr, requests := serveEach(t, func(c *net.TCPConn) { io.WriteString(c, whole) })
	c := &Client{Addr: addr, Keep: true}
	for n := 1; n < 4; n++ {
		if got := c.HTTP("/", "duck", time.Now().Add(5*time.Second)); got != Answered || len(requests) != n {
			t.Fatalf("kind %q over %d connections, want %d", got, len(requests), n)
		}
		for end := time.Now().Add(5 * time.Second); !c.idle[0].Gone(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("a closed connection looks open")
			}
		}
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

func accept(listener net.Listener, serve func(*net.TCPConn)) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		serve(conn.(*net.TCPConn))
		conn.Close()
	}
}

// serveEach reads a request from each connection and does serve.
func serveEach(t *testing.T, serve func(*net.TCPConn)) (addr string, requests chan bool) {
	listener := listen(t)
	requests = make(chan bool, 10)
	go accept(listener, func(c *net.TCPConn) {
		if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			io.Copy(io.Discard, r.Body)
		}
		requests <- true
		serve(c)
	})
	return listener.Addr().String(), requests
}
