package main

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/testdata/k8s/tally"
)

// serve answers every connection with what answer does to it, and counts them.
func serve(t *testing.T, answer func(net.Conn)) (addr string, conns *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns = new(atomic.Int32)
	done := make(chan bool)
	t.Cleanup(func() { listener.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			answer(conn)
		}
	}()
	return listener.Addr().String(), conns
}

// says reads a request and answers.
func says(conn net.Conn, text string) {
	conn.Read(make([]byte, 1024))
	io.WriteString(conn, text)
}

// TestKinds: each way to lose a request has its name.
func TestKinds(t *testing.T) {
	for want, answer := range map[tally.Kind]func(net.Conn){
		tally.Answered: func(c net.Conn) { says(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); c.Close() },
		tally.Status:   func(c net.Conn) { says(c, "HTTP/1.1 503 no\r\nContent-Length: 0\r\n\r\n"); c.Close() },
		tally.Cut:      func(c net.Conn) { says(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"); c.Close() },
		tally.Reset:    func(c net.Conn) { says(c, ""); c.(*net.TCPConn).SetLinger(0); c.Close() },
	} {
		addr, _ := serve(t, answer)
		if got := (&client{addr: addr}).request(); got != want {
			t.Errorf("%s is taken for %s", want, got)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if got := (&client{addr: listener.Addr().String()}).request(); got != tally.Refused {
		t.Errorf("refused is taken for %s", got)
	}
	_, err = (&net.Dialer{Deadline: time.Unix(1, 0)}).Dial("tcp", listener.Addr().String())
	if got := kindOf(0, err); got != tally.Timeout {
		t.Errorf("%v is taken for %s", err, got)
	}
}

// TestKeep: a connection is used again, or not.
func TestKeep(t *testing.T) {
	for keep, want := range map[bool]int32{true: 1, false: 3} {
		addr, conns := serve(t, func(c net.Conn) {
			defer c.Close()
			for range map[bool]int{true: 3, false: 1}[keep] {
				says(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		})
		c := &client{addr: addr, keep: keep}
		for range 3 {
			if got := c.request(); got != tally.Answered {
				t.Fatal(got)
			}
		}
		if conns.Load() != want {
			t.Errorf("keep %v: %d connections", keep, conns.Load())
		}
	}
}

// TestGone: one that the server has closed meanwhile is not used again.
func TestGone(t *testing.T) {
	addr, conns := serve(t, func(c net.Conn) { says(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); c.Close() })
	c := &client{addr: addr, keep: true}
	for n := int32(1); n < 4; n++ {
		if got := c.request(); got != tally.Answered || conns.Load() != n {
			t.Fatalf("%s, over %d connections", got, conns.Load())
		}
		for end := time.Now().Add(timeout); !c.idle[0].gone(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("it looks as if it were open")
			}
		}
	}
}

// TestSettled: of the requests that have begun, the first that is pending bounds what
// has settled.
func TestSettled(t *testing.T) {
	c := newCount()
	for range 3 {
		c.begin(0)
	}
	c.end(0, tally.Answered, 2*slow)
	c.end(2, tally.Refused, time.Millisecond)
	if got := c.tally(); got.Settled != 1 || got.Sent != 3 || got.Ended() != 2 || got.Failed() != 1 || got.Slow != 1 {
		t.Errorf("%+v", got)
	}
	c.end(1, tally.Answered, 0)
	if got := c.tally(); got.Settled != 3 || got.How() != "1 refused" {
		t.Errorf("%+v", got)
	}
}
