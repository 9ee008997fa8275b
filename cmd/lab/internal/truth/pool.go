package truth

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// errClosed is the error of a request for which no connection is left: a client of several
// servers takes another server, and the request is not lost.
var errClosed = errors.New("the server has closed the connection")

// keptFor is how long a connection is used after TERM if the server does not close it.
const keptFor = 6 * s

// runPool makes requests until the server has gone: each takes the connection that has not been
// used for the longest time. With think each connection has its own requests. No connection is
// replaced, unless the row has a lag.
func (p *play) runPool(t *trial) {
	var all sync.WaitGroup
	if p.free == nil {
		p.openPool(t, &all)
	}
	if p.Think == 0 {
		p.load(t, &all)
	} else {
		for range p.Clients {
			all.Go(func() { (<-p.free).loop() })
		}
	}
	all.Wait()
}

// openPool opens the connections, of three clients.
func (p *play) openPool(t *trial, all *sync.WaitGroup) {
	p.free = make(chan *client, p.Clients)
	clients := []*client{t.client(p), t.client(p), t.client(p)}
	for i := 0; i < p.Clients; i += p.Share {
		conn := &client{t: t, p: p, addr: clients[i%len(clients)].addr, single: t.c.Lag == 0}
		all.Go(func() {
			t.wait(p.From + time.Duration(i)*10*ms)
			if err := conn.begin(); err != nil {
				t.check(err)
				return
			}
			for range p.Share {
				p.free <- conn
			}
		})
	}
}

// load makes requests at their moments. After the machine has stood still, those that are late would
// come in a burst, and are left out.
func (p *play) load(t *trial, all *sync.WaitGroup) {
	for moment := range p.Moments(0) {
		if moment < p.From+500*ms {
			continue
		}
		if !t.wait(moment) {
			return
		}
		if time.Since(t.term.Add(moment)) > 20*ms {
			continue
		}
		for range p.Burst {
			all.Go(func() {
				conn := <-p.free
				conn.use()
				p.free <- conn
			})
		}
	}
}

// begin opens the connection, or so many of a library's, and makes a first request on each, which
// is slow on some servers and does not count.
func (c *client) begin() (err error) {
	first := request{"first", 100 * ms}
	if c.link, err = c.open(); err != nil {
		return err
	}
	err = c.request(first)
	var all sync.WaitGroup
	for range c.p.Share - 1 {
		all.Go(func() { c.t.check(c.request(first)) })
	}
	all.Wait()
	return err
}

// request makes a request. Where the row has a lag, a connection that has ended is replaced, which
// libraries do by themselves.
func (c *client) request(r request) error {
	stream, isStream := c.link.(*peers.Stream)
	isStream = isStream && !c.single
	switch {
	case c.single && c.ended():
		return errClosed
	case isStream && stream.Ended():
		stream.Close()
		link, err := c.open()
		if err != nil {
			return err
		}
		stream = link.(*peers.Stream)
		c.link = link
	}
	err := c.take(c.link, c.p.Steps, r)
	if isStream && (err != nil || stream.Last) {
		stream.Close()
	}
	return err
}

// raceLimit is the longest time from a request to a failure by the race, in which the
// server closes an idle connection while a request is on the way. The race takes a round
// trip at most, and longer on a busy machine. Servers that cut requests in progress also
// cut requests of 300 ms, half of them later than the limit.
const raceLimit = 150 * ms

// use makes a request that counts if it is lost, and reports whether the connection may be used
// again. The answer does not decide when the signal is due.
func (c *client) use() bool {
	t := c.t
	r := request{fmt.Sprint("order", t.named.Add(1)), c.p.randomThink()}
	began := time.Now()
	err := c.request(r)
	took, early := time.Since(began), time.Now().Before(t.term)
	switch {
	case err == nil:
	case early:
		t.check(fmt.Errorf("a request failed before TERM: %w", err))
	case strings.Contains(err.Error(), errClosed.Error()): // gRPC does not wrap
		return false
	default:
		t.lose(loss{Name: r.name, Error: fmt.Sprintf("after %v: %v", took.Round(ms), err), Raced: t.c.Race && took < raceLimit})
	}
	if !early {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.Requests++
	}
	return err == nil
}

// loop uses the connection until the server closes it.
func (c *client) loop() {
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for c.t.sleep(plays.Exponential(random, c.p.Think)) && c.use() {
		if c.t.c.Race && time.Since(c.t.term) > keptFor {
			c.t.mu.Lock()
			defer c.t.mu.Unlock()
			c.t.Open++
			return
		}
	}
}

// ended reports that the server has ended the connection.
func (c *client) ended() bool {
	conn := c.conn.Load()
	if conn == nil {
		return false
	}
	n, err := load.Peek(*conn)
	return n == 0 && !errors.Is(err, unix.EAGAIN)
}
