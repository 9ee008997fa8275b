package truth

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
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

// pooled is a connection of a pool. No connection is replaced.
type pooled struct {
	*client
	link peers.Link
}

// runPool opens connections, of three clients, and makes requests until the server has gone:
// each takes the connection that has not been used for the longest time. With think each
// connection has its own requests.
func (p *play) runPool(t *trial) {
	var all sync.WaitGroup
	var peers []*client
	for range 3 {
		peers = append(peers, t.client(p))
	}
	free := make(chan *pooled, p.Clients)
	for i := 0; i < p.Clients; i += p.Share {
		c := &client{t: t, p: p, addr: peers[i%len(peers)].addr, only: &onlyConn{}}
		all.Go(func() {
			t.wait(p.From + time.Duration(i)*10*ms)
			l, err := c.open()
			if err != nil {
				t.check(err)
				return
			}
			shared := &pooled{c, l}
			t.check(shared.request()) // the first is slow on some servers, and does not count
			for range p.Share {
				if p.Think > 0 {
					all.Go(shared.loop)
				} else {
					free <- shared
				}
			}
		})
	}
	if p.Think == 0 {
		for moment := range p.Moments(0) {
			if moment < p.From+500*ms {
				continue
			}
			if !t.wait(moment) {
				break
			}
			for range p.Burst {
				all.Go(func() {
					conn := <-free
					conn.use()
					free <- conn
				})
			}
		}
	}
	all.Wait()
}

func (c *pooled) request() error {
	if err := c.only.open(); err != nil {
		return err
	}
	for _, step := range c.p.Steps {
		if err := c.take(c.link, step); err != nil {
			return err
		}
	}
	return nil
}

// use makes a request that counts if it is lost. The answer does not decide when the
// signal is due. It reports whether the connection may be used again.
func (c *pooled) use() bool {
	began := time.Now()
	err := c.request()
	closed := err != nil && strings.Contains(err.Error(), errClosed.Error()) // gRPC does not wrap
	if !closed {
		c.t.noteKept(time.Since(began), err)
	}
	return err == nil
}

// loop uses the connection until the server closes it.
func (c *pooled) loop() {
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	again := true
	for again && c.t.sleep(plays.Exponential(random, c.p.Think)) {
		if c.t.c.Race && time.Since(c.t.term) > keptFor {
			return
		}
		again = c.use()
	}
	c.t.noteClosed()
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
	if n, err := load.Peek(o.conn); n == 0 && !errors.Is(err, unix.EAGAIN) {
		return errClosed
	}
	return nil
}

// raceLimit is the longest time from a request to a failure by the race, in which the
// server closes an idle connection while a request is on the way. The race takes a round
// trip at most, and longer on a busy machine. Servers that cut requests in progress also
// cut requests of 300 ms, half of them later than the limit.
const raceLimit = 150 * ms

// keptTally has what the pools of a trial have seen. In a race, a row of connections that
// are kept to the signal, the requests lost in the race are right, and the server must
// close all connections.
type keptTally struct {
	Conns    int
	Requests int
	Raced    []time.Duration // from the request to the failure, of requests lost in the race
	Cut      []time.Duration // the same, of requests that failed later
	Closed   []time.Duration // when the server closed each connection, relative to TERM
}

// noteKept counts a request by duration and error.
func (t *trial) noteKept(took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept.Requests++
	if err == nil {
		return
	}
	raced := took < raceLimit
	if raced {
		t.kept.Raced = append(t.kept.Raced, took)
	} else {
		t.kept.Cut = append(t.kept.Cut, took)
	}
	if !raced || !t.c.Race {
		t.lost = append(t.lost, fmt.Sprintf("%s: after %v: %v", seconds(time.Since(t.term)), took.Round(ms), err))
	}
}

// noteClosed counts a connection closed by the server.
func (t *trial) noteClosed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept.Closed = append(t.kept.Closed, time.Since(t.term))
}

// judgeRace notes what a server that closes kept connections must not do.
func (t *trial) judgeRace() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.c.Plays {
		t.kept.Conns += t.c.Plays[i].Clients
	}
	if open := t.kept.Conns - len(t.kept.Closed); open > 0 {
		t.lost = append(t.lost, fmt.Sprintf("%s: %d of %d connections are still open", seconds(keptFor), open, t.kept.Conns))
	}
	if len(t.kept.Closed) > 0 && slices.Min(t.kept.Closed) < 0 {
		t.lost = append(t.lost, seconds(slices.Min(t.kept.Closed))+": the server closed a connection before the signal")
	}
}

// raceSummary returns what the races of a row have shown, or "".
func (r *row) raceSummary() string {
	if !r.Race {
		return ""
	}
	var requests, open, racedIn, cutIn int
	var raced, cut, closed []time.Duration
	for _, found := range r.results {
		kept := found.Kept
		requests += kept.Requests
		open += kept.Conns - len(kept.Closed)
		raced = append(raced, kept.Raced...)
		cut = append(cut, kept.Cut...)
		racedIn += min(len(kept.Raced), 1)
		cutIn += min(len(kept.Cut), 1)
		if len(kept.Closed) > 0 {
			closed = append(closed, slices.Max(kept.Closed)-found.Signal)
		}
	}
	text := fmt.Sprintf("; %d requests in %d stops: %d lost the race in %d stops%s, %d were cut in %d stops",
		requests, len(r.results), len(raced), racedIn, median(raced, " (median %v after they were sent)"), len(cut), cutIn)
	if open > 0 {
		text += fmt.Sprintf(", %d connections stayed open", open)
	}
	return text + median(closed, "; all closed %v after the signal (median)")
}

// median writes the median of some times, or nothing.
func median(all []time.Duration, format string) string {
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return fmt.Sprintf(format, all[len(all)/2].Round(ms/10))
}
