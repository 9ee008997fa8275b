package load

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// firstPort is the lowest local port that a client with Ports takes.
const firstPort = 2048

// Client sends requests and retries nothing. The client of net/http retries some
// requests without being asked.
type Client struct {
	Addr string
	Keep bool // keep connections and use them again
	// Ports takes the local ports in turn. The kernel would take the same port again
	// within seconds, and connection tracking might send the new connection where the
	// last use of the port went: to a pod that has gone.
	Ports bool
	// Conns, if positive, is the size of the pool of kept connections: a request opens a
	// connection while fewer than Conns are open, and otherwise takes the connection
	// that was idle longest, or waits if all are busy.
	Conns int
	// Pick, if set, returns the address of each new connection, in place of Addr. Pick is
	// called from several goroutines.
	Pick func() string

	mu   sync.Mutex // requests run beside each other
	idle []*Conn
	open int           // connections, idle and busy
	busy chan struct{} // with Conns: an entry for each request that has a connection
	port int
}

// Conn is a connection to the server or its balancer.
type Conn struct {
	net.Conn
	In *bufio.Reader
}

// Dial opens a connection that fails at the deadline.
func Dial(addr string, deadline time.Time) (*Conn, error) {
	return dial(&net.Dialer{Deadline: deadline}, addr, deadline)
}

func dial(d *net.Dialer, addr string, deadline time.Time) (*Conn, error) {
	conn, err := d.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &Conn{conn, bufio.NewReader(conn)}, conn.SetDeadline(deadline)
}

// Do makes one request: exchange writes the request to a connection and reads the
// answer, and reports whether the connection may be used again.
func (c *Client) Do(deadline time.Time, exchange func(*Conn) (again bool, err error)) error {
	if c.Conns > 0 {
		busy := c.places()
		late := time.NewTimer(time.Until(deadline))
		defer late.Stop()
		select {
		case busy <- struct{}{}:
			defer func() { <-busy }()
		case <-late.C:
			return os.ErrDeadlineExceeded
		}
	}
	conn, err := c.conn(deadline)
	if err != nil {
		return err
	}
	again, err := exchange(conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && again && c.Keep {
		c.idle = append(c.idle, conn)
	} else {
		c.drop(conn)
	}
	return err
}

// places returns the places of the requests that have a connection, with Conns.
func (c *Client) places() chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy == nil {
		c.busy = make(chan struct{}, c.Conns)
	}
	return c.busy
}

// drop closes a connection. The caller holds the mutex.
func (c *Client) drop(conn *Conn) {
	conn.Close()
	c.open--
}

// HTTP makes one HTTP request, which an empty body makes a GET and any other a POST.
func (c *Client) HTTP(path, body string, deadline time.Time) Kind {
	var answer Answer
	err := c.Do(deadline, func(conn *Conn) (again bool, err error) {
		answer, err = conn.HTTP(path, body, c.Keep)
		return answer.Again, err
	})
	return KindOf(answer.Status, err)
}

// Answer is an HTTP answer that has been read.
type Answer struct {
	Status int
	Again  bool // the connection may be used again
}

// HTTP sends one HTTP request and reads the whole answer. Without keep the request asks
// the server to close the connection.
func (c *Conn) HTTP(path, body string, keep bool) (a Answer, err error) {
	method, header := "GET", ""
	if body != "" {
		method, header = "POST", fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	if !keep {
		header += "Connection: close\r\n"
	}
	if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: lab\r\n%s\r\n%s", method, path, header, body); err != nil {
		return a, err
	}
	status, answer, err := c.Head()
	if err != nil {
		return a, err
	}
	a = Answer{Status: status, Again: keep && !strings.EqualFold(answer.Get("Connection"), "close")}
	size, err := strconv.ParseInt(answer.Get("Content-Length"), 10, 64)
	if err == nil {
		_, err = io.CopyN(io.Discard, c.In, size)
	} else { // the body has no length: it ends with the connection
		a.Again = false
		_, err = io.Copy(io.Discard, c.In)
	}
	return a, err
}

// Head reads the head of an HTTP answer. Without net/http, whose TLS takes long to compile, a
// program that has this client is soon built.
func (c *Conn) Head() (status int, header textproto.MIMEHeader, err error) {
	in := textproto.NewReader(c.In)
	line, err := in.ReadLine()
	if err != nil {
		return 0, nil, err
	}
	if _, err := fmt.Sscanf(line, "HTTP/1.1 %d", &status); err != nil {
		return 0, nil, fmt.Errorf("cannot read the status in %q: %w", line, err)
	}
	header, err = in.ReadMIMEHeader()
	return status, header, err
}

// Close closes the idle connections.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.idle {
		c.drop(conn)
	}
	c.idle = nil
}

// conn returns a kept connection or a new one.
func (c *Client) conn(deadline time.Time) (*Conn, error) {
	if conn := c.reuse(); conn != nil {
		return conn, conn.SetDeadline(deadline)
	}
	conn, err := c.connect(deadline)
	if err != nil {
		c.mu.Lock()
		c.open--
		c.mu.Unlock()
	}
	return conn, err
}

// connect opens a connection.
func (c *Client) connect(deadline time.Time) (*Conn, error) {
	addr := c.Addr
	if c.Pick != nil {
		addr = c.Pick()
	}
	if !c.Ports {
		return Dial(addr, deadline)
	}
	for {
		from := &net.TCPAddr{Port: c.nextPort()}
		conn, err := dial(&net.Dialer{Deadline: deadline, LocalAddr: from}, addr, deadline)
		if errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(deadline) {
			continue
		}
		return conn, err
	}
}

// reuse returns the connection that was idle longest. If reuse returns nil, the caller opens a
// connection, which is already counted.
func (c *Client) reuse() *Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.idle) > 0 && c.open >= c.Conns {
		conn := c.idle[0]
		c.idle = c.idle[1:]
		if !conn.Gone() {
			return conn
		}
		c.drop(conn)
	}
	c.open++
	return nil
}

// Gone reports whether the server has closed an idle connection. A server may, and
// every client looks before using a connection again.
func (c *Conn) Gone() bool {
	_, err := Peek(c.Conn)
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

func (c *Client) nextPort() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.port++
	if c.port < firstPort || c.port > 65535 {
		c.port = firstPort
	}
	return c.port
}
