package main

import (
	"bufio"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestClient: each way in which a request can end has its kind, and no request
// is sent twice.
func TestClient(t *testing.T) {
	for want, serve := range map[kind]func(*net.TCPConn){
		answered: func(c *net.TCPConn) { c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")) },
		status5:  func(c *net.TCPConn) { c.Write([]byte("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")) },
		cut:      func(c *net.TCPConn) { c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")) },
		reset:    func(c *net.TCPConn) { c.SetLinger(0) },
		timedOut: func(*net.TCPConn) { time.Sleep(time.Second) },
	} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			for _, keep := range []bool{false, true} {
				addr, count := serveEach(t, serve)
				c := &client{addr: addr, keep: keep}
				if got := c.get(0, time.Now().Add(500*time.Millisecond)); got != want {
					t.Errorf("it is %q, want %q", got, want)
				}
				if n := len(count); n != 1 {
					t.Errorf("%d requests, want 1", n)
				}
				c.close()
			}
		})
	}
}

func TestClientRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	c := &client{addr: listener.Addr().String()}
	if got := c.get(0, time.Now().Add(time.Second)); got != refused {
		t.Errorf("it is %q", got)
	}
}

// serveEach does the same with each connection, once a request is there.
func serveEach(t *testing.T, serve func(*net.TCPConn)) (addr string, count chan struct{}) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	count = make(chan struct{}, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			http.ReadRequest(bufio.NewReader(conn))
			count <- struct{}{}
			serve(conn.(*net.TCPConn))
			conn.Close()
		}
	}()
	return listener.Addr().String(), count
}
