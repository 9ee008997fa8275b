package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/testdata/k8s/tally"
)

const (
	timeout   = 5 * time.Second
	firstPort = 2048
)

// client makes requests and retries nothing, which is why it is not net/http's: that
// one sends some of them again, unasked. They are POSTs, which no proxy repeats.
type client struct {
	addr string
	keep bool

	mu   sync.Mutex // requests run beside each other
	port int
	idle []*line
}

// line is a connection.
type line struct {
	net.Conn
	in *bufio.Reader
}

func (c *client) request() tally.Kind {
	deadline := time.Now().Add(timeout)
	l, err := c.line(deadline)
	if err != nil {
		return kindOf(0, err)
	}
	l.SetDeadline(deadline)
	status, again, err := l.exchange(c.keep)
	if err != nil || !again {
		l.Close()
	} else {
		c.mu.Lock()
		c.idle = append(c.idle, l)
		c.mu.Unlock()
	}
	return kindOf(status, err)
}

// line is one that is idle, or a new one.
func (c *client) line(deadline time.Time) (*line, error) {
	if l := c.reuse(); l != nil {
		return l, nil
	}
	for {
		from := &net.TCPAddr{Port: c.nextPort()}
		conn, err := (&net.Dialer{Deadline: deadline, LocalAddr: from}).Dial("tcp", c.addr)
		if errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(deadline) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return &line{conn, bufio.NewReader(conn)}, nil
	}
}

// reuse is the connection that was idle longest, if there is one.
func (c *client) reuse() *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.idle) > 0 {
		l := c.idle[0]
		c.idle = c.idle[1:]
		if !l.gone() {
			return l
		}
		l.Close()
	}
	return nil
}

// gone reports whether the server has closed a connection that is idle. It may, and
// every client looks before it uses one again.
func (l *line) gone() bool {
	raw, err := l.Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return true
	}
	open := false
	raw.Control(func(fd uintptr) {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open = errors.Is(err, syscall.EAGAIN)
	})
	return !open
}

// nextPort goes through all local ports in turn. The kernel would take the same again
// within seconds, and connection tracking might send it where its last use went: to a
// pod that is gone.
func (c *client) nextPort() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.port++
	if c.port < firstPort || c.port > 65535 {
		c.port = firstPort
	}
	return c.port
}

func (l *line) exchange(keep bool) (status int, again bool, err error) {
	header := "Connection: close\r\n"
	if keep {
		header = ""
	}
	if _, err = fmt.Fprintf(l, "POST / HTTP/1.1\r\nHost: web\r\nContent-Length: 4\r\n%s\r\nduck", header); err != nil {
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

// kindOf is the kind of an error, or of a status where there was an answer.
func kindOf(status int, err error) tally.Kind {
	switch {
	case err == nil && status < 400:
		return tally.Answered
	case err == nil:
		return tally.Status
	case errors.Is(err, syscall.ECONNREFUSED):
		return tally.Refused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return tally.Reset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return tally.Cut
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return tally.Lost
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded): // a dialer's is the latter
		return tally.Timeout
	}
	return tally.Other
}
