package truth

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// errClosed is the error of a request for which no connection is left: a client of several
// servers takes another server, and the request is not lost.
var errClosed = errors.New("the server has closed the connection")

// caller makes a request on a kept connection.
type caller func() error

// connPool is a pool of kept connections, which are used in turn. No connection is replaced.
type connPool struct {
	t    *trial
	free chan caller
}

// keepPool opens connections at a moment, with a request on each.
func (t *trial) keepPool(at time.Duration, callers []caller) connPool {
	p := connPool{t, make(chan caller, len(callers))}
	for i, call := range callers {
		t.at(at+time.Duration(i)*10*ms, func() {
			t.keep(call)
			p.free <- call
		})
	}
	return p
}

// keep makes a request that counts if the request is lost. The answer does not decide when
// the signal is due.
func (t *trial) keep(call caller) {
	err := call()
	if err == nil || errors.Is(err, errClosed) || strings.Contains(err.Error(), errClosed.Error()) { // gRPC does not wrap
		return
	}
	t.real(func() error { return err })
}

// use makes a request on the connection that has not been used for the longest time.
func (p connPool) use() {
	call := <-p.free
	p.t.keep(call)
	p.free <- call
}

// random plans requests at random moments, at a rate a second, until the server has gone.
// Each request takes a free connection, or waits. Each trial has moments of its own.
func (p connPool) random(from time.Duration, rate float64) {
	p.t.at(from, func() {
		var all sync.WaitGroup
		r := newRandom(uint64(time.Now().UnixNano()))
		for moment := from; p.t.wait(moment); moment += exponential(r, rate) {
			all.Go(p.use)
		}
		all.Wait()
	})
}

// bursts plans size requests at a time, each period, from from to to or until the server
// has gone.
func (p connPool) bursts(from, to, period time.Duration, size int) {
	p.t.at(from, func() {
		var all sync.WaitGroup
		for moment := from; moment < to && p.t.wait(moment); moment += period {
			for range size {
				all.Go(p.use)
			}
		}
		all.Wait()
	})
}

// closedLoop plans requests on size connections, each at a random time after the answer to
// the one before, until the server has gone.
func (p connPool) closedLoop(from time.Duration, size int, think time.Duration) {
	for i := range size {
		p.t.at(from, func() {
			call, r := <-p.free, newRandom(uint64(i))
			for p.t.sleep(exponential(r, 1/think.Seconds())) {
				p.t.keep(call)
			}
		})
	}
}

// exponential returns a random time between two events of a rate a second.
func exponential(r *random, rate float64) time.Duration {
	return time.Duration(r.ExpFloat64() / rate * float64(time.Second))
}

// onlyConn is the only connection that a client opens.
type onlyConn struct {
	mu   sync.Mutex // clients of HTTP/2 dial in the background
	conn net.Conn
	used bool
}

// dial connects at the first call. Further calls fail with errClosed.
func (o *onlyConn) dial(connect func() (net.Conn, error)) (net.Conn, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.used {
		return nil, errClosed
	}
	o.used = true
	conn, err := connect()
	o.conn = conn
	return conn, err
}

// open fails with errClosed if the server has closed the connection.
func (o *onlyConn) open() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conn == nil {
		return nil
	}
	raw, err := o.conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	ended := false
	err = raw.Control(func(fd uintptr) {
		n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		ended = n == 0 && err == nil || err != nil && err != unix.EAGAIN
	})
	if err != nil || ended {
		return errClosed
	}
	return nil
}

// sole returns a client at the same address that opens one connection.
func (c *client) sole() *client {
	return &client{t: c.t, ip: c.ip, once: c.once, only: &onlyConn{}}
}

// callers returns n connections of three clients.
func (t *trial) callers(n int, newCaller func(c *client) caller) []caller {
	clients := t.crowd(3)
	var all []caller
	for i := range n {
		all = append(all, newCaller(clients[i%len(clients)].sole()))
	}
	return all
}

// postCaller returns a connection for HTTP requests that clients do not repeat.
func postCaller(w wire, path string) func(c *client) caller {
	return func(c *client) caller {
		site := c.over(w)
		return func() error { return site.do("POST", path, strings.NewReader("an order")) }
	}
}

// rawCaller returns a connection to the raw server.
func rawCaller(line string) func(c *client) caller {
	return func(c *client) caller {
		open := sync.OnceValue(c.dial)
		return func() error {
			if err := c.only.open(); err != nil {
				return err
			}
			return open().exchange(line)
		}
	}
}

// grpcCaller returns a connection for calls of gRPC.
func grpcCaller(takes time.Duration) func(c *client) caller {
	return func(c *client) caller {
		ch := c.channel()
		return func() error { return ch.invoke(takes) }
	}
}

// queryCaller returns a connection to PostgreSQL.
func queryCaller(text string) func(c *client) caller {
	return func(c *client) caller {
		db := c.database(keep)
		open := sync.OnceValues(func() (*sql.Conn, error) { return db.db.Conn(context.Background()) })
		return func() error {
			conn, err := open()
			if err == nil {
				err = c.only.open()
			}
			if err != nil {
				return err
			}
			_, err = conn.ExecContext(context.Background(), text)
			return err
		}
	}
}

// redisCaller returns a connection to Redis.
func redisCaller(line string) func(c *client) caller {
	return func(c *client) caller {
		open := sync.OnceValue(c.redis)
		return func() error {
			if err := c.only.open(); err != nil {
				return err
			}
			return open().command(line)
		}
	}
}
