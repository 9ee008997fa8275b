package images

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// One request begins each period, whatever those before it do; every other one has a
// connection of its own. Slow ones are answered after four seconds: longer than the
// silence that a hold waits for. Nothing is ever tried again.
const (
	period  = 25 * time.Millisecond
	timeout = 10 * time.Second
)

// talk has one request answered; keep asks the server to keep the connection.
type talk func(line *line, slow, keep bool) error

// line is a connection, with what has been read of it too early.
type line struct {
	net.Conn
	*bufio.Reader
}

func (l *line) Read(p []byte) (int, error) { return l.Reader.Read(p) }

func dial(address string) (*line, error) {
	conn, err := net.DialTimeout("tcp", address, timeout)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(timeout))
	return &line{conn, bufio.NewReader(conn)}, nil
}

// speakHTTP is a talk.
func speakHTTP(l *line, slow, keep bool) error {
	path, connection := "/", "close"
	if slow {
		path = "/slow"
	}
	if keep {
		connection = "keep-alive"
	}
	if _, err := fmt.Fprintf(l, "GET %s HTTP/1.1\r\nHost: test\r\nConnection: %s\r\n\r\n", path, connection); err != nil {
		return err
	}
	answer, err := http.ReadResponse(l.Reader, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || len(body) == 0 || keep && answer.Close) {
		err = fmt.Errorf("%s, %q, closes: %v", answer.Status, body, answer.Close)
	}
	return err
}

// request is one that has ended.
type request struct {
	begun time.Time
	took  time.Duration
	slow  bool
	err   error
}

// load is clients, or a balancer: steady, until it is told to cease.
type load struct {
	address string
	talk    talk
	quit    chan struct{}
	pacer   sync.WaitGroup
	calls   sync.WaitGroup

	mu    sync.Mutex // a goroutine a request, since none may wait for another
	pool  []*line    // connections that are not used now
	ended []request
	slow  int // slow requests in flight
}

// press begins.
func press(address string, talk talk) *load {
	l := &load{address: address, talk: talk, quit: make(chan struct{})}
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

// cease begins nothing more, and waits for what was begun. The connections of the pool
// stay open: a balancer that has let go of a server need not have closed them.
func (l *load) cease() []request {
	close(l.quit)
	l.pacer.Wait()
	l.calls.Wait()
	return l.ended
}

// close closes the pool.
func (l *load) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.pool {
		line.Close()
	}
}

func (l *load) call(slow, keep bool) {
	r := request{begun: time.Now(), slow: slow}
	l.count(slow, 1)
	defer l.count(slow, -1)
	line, err := l.take(keep)
	if r.err = err; err == nil {
		if r.err = l.talk(line, slow, keep); r.err != nil || !keep {
			line.Close()
			line = nil
		}
	}
	r.took = time.Since(r.begun)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = append(l.ended, r)
	if line != nil {
		l.pool = append(l.pool, line)
	}
}

func (l *load) count(slow bool, n int) {
	if slow {
		l.mu.Lock()
		l.slow += n
		l.mu.Unlock()
	}
}

// take is a connection that has been kept, where that is asked for and there is one, or
// a new one.
func (l *load) take(keep bool) (*line, error) {
	if keep {
		if line := l.kept(); line != nil {
			return line, line.SetDeadline(time.Now().Add(timeout))
		}
	}
	return dial(l.address)
}

func (l *load) kept() (line *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.pool); n > 0 {
		line, l.pool = l.pool[n-1], l.pool[:n-1]
	}
	return line
}

// runs is whether all kinds of requests are under way, and were answered.
func (l *load) runs() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.ended {
		if r.err != nil {
			return false, r.err
		}
	}
	return len(l.ended) >= 40 && len(l.pool) > 0 && l.slow > 1, nil
}

// tally is what became of requests.
type tally struct {
	all, late, slow, failed int
	reasons                 []string
}

// count counts those begun after a stop as late.
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

// until polls.
func until(reached func() (bool, error)) error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if yes, err := reached(); yes || err != nil {
			return err
		}
	}
	return errors.New("it took too long")
}
