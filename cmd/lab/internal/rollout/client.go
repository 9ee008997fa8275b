package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// client makes requests and retries nothing, which is why it is not net/http's:
// that one sends some of them again, unasked.
type client struct {
	addr string
	keep bool

	mu   sync.Mutex // requests run beside each other
	idle []*line
}

// line is a connection to the balancer.
type line struct {
	net.Conn
	in *bufio.Reader
}

// get makes one request that shall take think.
func (c *client) get(think time.Duration, deadline time.Time) kind {
	l, err := c.line(deadline)
	if err != nil {
		return kindOf(0, err)
	}
	l.SetDeadline(deadline)
	status, again, err := l.exchange(think, c.keep)
	if err != nil || !again {
		l.Close()
	} else {
		c.mu.Lock()
		c.idle = append(c.idle, l)
		c.mu.Unlock()
	}
	return kindOf(status, err)
}

// line is the connection that was idle longest, or a new one.
func (c *client) line(deadline time.Time) (*line, error) {
	c.mu.Lock()
	if len(c.idle) > 0 {
		l := c.idle[0]
		c.idle = c.idle[1:]
		c.mu.Unlock()
		return l, nil
	}
	c.mu.Unlock()
	conn, err := (&net.Dialer{Deadline: deadline}).Dial("tcp", c.addr)
	if err != nil {
		return nil, err
	}
	return &line{conn, bufio.NewReader(conn)}, nil
}

func (l *line) exchange(think time.Duration, keep bool) (status int, again bool, err error) {
	header := "Connection: close\r\n"
	if keep {
		header = ""
	}
	_, err = fmt.Fprintf(l, "GET /?think=%dns HTTP/1.1\r\nHost: lab\r\n%s\r\n", think.Nanoseconds(), header)
	if err != nil {
		return 0, false, err
	}
	answer, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return 0, false, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, keep && !answer.Close, err
}

func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.idle {
		l.Close()
	}
}
