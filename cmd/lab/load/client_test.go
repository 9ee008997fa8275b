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

// TestKinds: each end of a request has a kind, and no request is sent twice.
func TestKinds(t *testing.T) {
	for want, serve := range map[Kind]func(*net.TCPConn){
		Answered: func(c *net.TCPConn) { io.WriteString(c, whole) },
		Status5:  func(c *net.TCPConn) { io.WriteString(c, "HTTP/1.1 503 No\r\n\r\nnot now") },
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
	if got := KindOf(0, func() error { _, err := Dial("127.0.0.1:1", time.Unix(1, 0)); return err }()); got != Timeout {
		t.Errorf("a late connection is of kind %q", got)
	}
	server := serve(t)
	server.Close()
	c := &Client{Addr: server.Addr().String()}
	if got := c.HTTP("/", "", time.Now().Add(time.Second)); got != Refused {
		t.Errorf("kind %q, want %q", got, Refused)
	}
}

// TestPool: a pool opens a connection for each request until the pool is full, and then uses the
// connections in turn. A closed connection is replaced, and connections that are not kept are not
// used again.
func TestPool(t *testing.T) {
	const size = 3
	for _, c := range []*Client{{Keep: true}, {Ports: true}, {Keep: true, Conns: size}} {
		server := serve(t)
		picked := 0
		c.Pick = func() string { picked++; return server.Addr().String() }
		for i, want := range map[bool][]int{true: {max(1, c.Conns), max(1, c.Conns) + 1}, false: {6, 12}}[c.Keep] {
			for range 6 {
				if got := c.HTTP("/", "duck", time.Now().Add(5*time.Second)); got != Answered {
					t.Fatal(got)
				}
			}
			if picked != want || c.Keep && len(c.idle) != max(1, c.Conns) {
				t.Errorf("%d connections, %d idle, want %d", picked, len(c.idle), want)
			}
			if c.Keep && i == 0 {
				(<-server.accepted).Close()
				for end := time.Now().Add(5 * time.Second); !c.idle[0].Gone(); time.Sleep(time.Millisecond) {
					if time.Now().After(end) {
						t.Fatal("a closed connection looks open")
					}
				}
			}
		}
		c.Close()
	}
}

// counted is a server that sends its connections.
type counted struct {
	*Server
	accepted chan net.Conn
}

func serve(t *testing.T) counted {
	server, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := counted{server, make(chan net.Conn, 20)}
	server.Listener = counting{server.Listener, c.accepted}
	go server.Serve()
	t.Cleanup(func() { server.Close() })
	return c
}

type counting struct {
	net.Listener
	accepted chan net.Conn
}

func (c counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.accepted <- conn
	}
	return conn, err
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
