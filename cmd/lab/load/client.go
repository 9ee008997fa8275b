package load

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/websocket"
)

// Dial opens a connection, as the field DialContext of http.Transport does.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// Client sends requests and retries nothing. The client of net/http retries some
// requests without being asked.
type Client struct {
	dial Dial
	// pool has the kept connections that are not in use, first the one that was idle longest, and nil in
	// the place of each that is to be opened.
	pool chan *Conn
}

// NewClient returns a client that keeps so many connections and uses them in turn: a request waits while
// all are in use. With 0 each request has a connection of its own. dial, which is called from several
// goroutines, gets no address.
func NewClient(conns int, dial Dial) *Client {
	c := &Client{dial, make(chan *Conn, conns)}
	for range conns {
		c.pool <- nil
	}
	return c
}

// Do makes one request: exchange writes the request to a connection and reads the answer.
func (c *Client) Do(deadline time.Time, exchange func(*Conn) error) error {
	var conn *Conn
	if cap(c.pool) > 0 {
		conn = <-c.pool
		defer func() { c.pool <- conn }()
	}
	if conn.Ended() {
		conn.Close()
		conn = nil
	}
	if conn == nil {
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		defer cancel()
		opened, err := c.dial(ctx, "tcp", "")
		if err != nil {
			return err
		}
		conn = NewConn(opened)
	}
	conn.SetDeadline(deadline)
	err := exchange(conn)
	if err != nil || conn.Last || cap(c.pool) == 0 {
		conn.Close()
		conn = nil
	}
	return err
}

// HTTP makes one HTTP request, which an empty body makes a GET and any other a POST.
func (c *Client) HTTP(path, body string, deadline time.Time) Kind {
	method := "GET"
	if body != "" {
		method = "POST"
	}
	return KindOf(c.Do(deadline, func(conn *Conn) error {
		request, err := http.NewRequest(method, "http://lab"+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		request.Close = cap(c.pool) == 0
		if err := request.Write(conn); err != nil {
			return err
		}
		return conn.Answer()
	}))
}

// Close closes the connections, of which none is in use.
func (c *Client) Close() {
	for range cap(c.pool) {
		if conn := <-c.pool; conn != nil {
			conn.Close()
		}
	}
}

// Conn is a connection to the server or its balancer.
type Conn struct {
	net.Conn
	In   *bufio.Reader
	Last bool // the server closes the connection after an answer
	tcp  net.Conn
}

// NewConn returns a connection over TCP.
func NewConn(tcp net.Conn) *Conn { return &Conn{tcp, bufio.NewReader(tcp), false, tcp} }

// Close closes the connection without a farewell of TLS or of a WebSocket.
func (c *Conn) Close() error { return c.tcp.Close() }

// Answer reads an answer of HTTP/1.1.
func (c *Conn) Answer() error {
	answer, err := http.ReadResponse(c.In, nil)
	if err == nil {
		c.Last = answer.Close
	}
	return Finish(answer, err)
}

// Finish reads an answer to its end.
func Finish(answer *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return StatusError(answer.StatusCode)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// Upgrade makes the connection, or TLS over it, a WebSocket.
func (c *Conn) Upgrade() error {
	config, err := websocket.NewConfig("ws://lab/websocket", "http://lab")
	if err != nil {
		return err
	}
	chat, err := websocket.NewClient(config, c.Conn)
	if errors.Is(err, websocket.ErrBadStatus) { // a balancer's, without a server
		return StatusError(http.StatusServiceUnavailable)
	}
	if err == nil {
		c.Conn, c.In = chat, bufio.NewReader(chat)
	}
	return err
}

// Chat sends a line on a WebSocket, and reads the answer. A connection that is not one yet becomes one
// instead.
func (c *Conn) Chat(line string) error {
	if _, upgraded := c.Conn.(*websocket.Conn); !upgraded {
		return c.Upgrade()
	}
	fmt.Fprintln(c, line)
	_, err := c.In.ReadString('\n')
	c.Last = err != nil
	return nil
}

// Ended reports whether the server has closed an idle connection. A server may, and
// every client looks before using a connection again.
func (c *Conn) Ended() bool {
	if c == nil {
		return false
	}
	_, err := Peek(c.tcp)
	return !errors.Is(err, syscall.EAGAIN)
}

// Peek returns how many bytes, of one, have arrived unread: 0 after the server's end, and EAGAIN
// if none are there yet.
func Peek(conn net.Conn) (n int, err error) {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(fd uintptr) {
		n, _, err = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return max(n, 0), cmp.Or(failed, err)
}
