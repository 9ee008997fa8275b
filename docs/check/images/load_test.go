package images

import (
	"fmt"
	"strings"
	"sync"
	"time"

	client "github.com/lameduck-init/lameduck/cmd/lab/load"
)

// One request begins each period, whatever the earlier requests do; every other request
// has a connection of its own. Slow requests are answered after four seconds, longer than
// the silence that a hold waits for. Nothing is retried.
const (
	period  = 25 * time.Millisecond
	timeout = 10 * time.Second
)

// talk makes one request; keep asks the server to keep the connection.
type talk func(conn *client.Conn, slow, keep bool) error

// speakHTTP is a talk.
func speakHTTP(conn *client.Conn, slow, keep bool) error {
	path := "/"
	if slow {
		path = "/slow"
	}
	answer, err := conn.HTTP(path, "", keep)
	if err == nil && (answer.Status != 200 || answer.Size == 0 || answer.Again != keep) {
		err = fmt.Errorf("answer %+v", answer)
	}
	return err
}

// request is a request that has ended.
type request struct {
	begun time.Time
	took  time.Duration
	slow  bool
	err   error
}

// load is the clients of a server: steady, until cease.
type load struct {
	talk  talk
	quit  chan struct{}
	pacer sync.WaitGroup
	calls sync.WaitGroup
	kept  client.Client
	fresh client.Client

	mu    sync.Mutex // every request has a goroutine
	ended []request
	slow  int // slow requests in flight
}

// press starts a load.
func press(address string, talk talk) *load {
	l := &load{talk: talk, quit: make(chan struct{}), kept: client.Client{Addr: address, Keep: true}, fresh: client.Client{Addr: address}}
	l.pacer.Go(func() {
		tick := time.NewTicker(period)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
				slow, keep := n%32 == 0 || n%32 == 15, n%2 == 1
				l.calls.Go(func() { l.call(slow, keep) })
			case <-l.quit:
				return
			}
		}
	})
	return l
}

// cease begins no more requests and waits for the requests in flight. Kept connections stay
// open: a balancer that has let go of a server need not have closed them.
func (l *load) cease() []request {
	close(l.quit)
	l.pacer.Wait()
	l.calls.Wait()
	return l.ended
}

func (l *load) close() { l.kept.Close() }

func (l *load) call(slow, keep bool) {
	r := request{begun: time.Now(), slow: slow}
	l.count(slow, 1)
	defer l.count(slow, -1)
	c := &l.fresh
	if keep {
		c = &l.kept
	}
	r.err = c.Do(r.begun.Add(timeout), func(conn *client.Conn) (again bool, err error) {
		return keep, l.talk(conn, slow, keep)
	})
	r.took = time.Since(r.begun)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = append(l.ended, r)
}

func (l *load) count(slow bool, n int) {
	if slow {
		l.mu.Lock()
		l.slow += n
		l.mu.Unlock()
	}
}

// runs reports whether requests of all kinds are in flight, and were answered. The error
// is that of the first request that failed.
func (l *load) runs() (bool, error) {
	idle := l.kept.Idle()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.ended {
		if r.err != nil {
			return false, r.err
		}
	}
	return len(l.ended) >= 40 && idle > 0 && l.slow > 1, nil
}

// tally counts the outcomes of requests.
type tally struct {
	all, late, slow, failed int
	reasons                 []string
}

// count counts requests. A request that began after the stop is late.
func count(requests []request, stop time.Time) (t tally) {
	for _, r := range requests {
		t.all++
		if r.begun.After(stop) {
			t.late++
		}
		if r.slow {
			t.slow++
		}
		if r.err != nil {
			t.failed++
			t.reasons = append(t.reasons, fmt.Sprintf("begun at %+.1f s, failed after %.1f s: %v", r.begun.Sub(stop).Seconds(), r.took.Seconds(), r.err))
		}
	}
	return t
}

func (t tally) String() string {
	text := fmt.Sprintf("%d requests, %d of them after the stop, %d slow, %d failed", t.all, t.late, t.slow, t.failed)
	return strings.Join(append([]string{text}, t.reasons[:min(3, t.failed)]...), "\n")
}
