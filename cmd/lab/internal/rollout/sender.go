package rollout

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// requestTimeout bounds a request, beyond the server's thinking time.
const requestTimeout = 8 * time.Second

// lost is a long-lived connection that ended, with the messages on it. Lost connections
// are counted apart from the requests.
const lost load.Kind = "lost"

// result is how one request ended.
type result struct {
	planned time.Time
	at      time.Time
	kind    load.Kind
	extra   time.Duration // from the planned time to the answer, less the thinking time
}

// sender is an open-loop load: requests are sent at planned times, whatever becomes of
// earlier requests.
type sender struct {
	addr   string
	pick   func() string // the address of each connection, or nil
	server *server
	scale  scale
	rate   int
	seed   uint64
	began  time.Time

	mu      sync.Mutex // every request has a goroutine
	results []result
	late    time.Duration // the longest delay behind the plan
	slowest time.Duration // the longest extra
}

// run sends until ctx ends, and returns when all requests have ended.
func (l *sender) run(ctx context.Context) {
	l.began = time.Now()
	if l.server.longLived {
		l.chat(ctx)
		return
	}
	c := &load.Client{Addr: l.addr, Pick: l.pick, Keep: l.server.keepAlive, Conns: l.server.conns}
	defer c.Close()
	body := ""
	if l.server.post {
		body = "duck"
	}
	random := rand.New(rand.NewPCG(l.seed, 0))
	var all sync.WaitGroup
	defer all.Wait()
	for at := l.began; l.sleep(ctx, at); at = at.Add(l.server.pause(random, l.rate, l.scale)) {
		think := l.server.think(random, l.scale)
		all.Go(func() {
			k := c.HTTP(fmt.Sprintf("/?think=%dns", think.Nanoseconds()), body, at.Add(think+requestTimeout))
			l.add(at, k, think)
		})
	}
}

// sleep sleeps until a planned time, and reports false at the end.
func (l *sender) sleep(ctx context.Context, at time.Time) bool {
	if wait := time.Until(at); wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false
		}
	}
	l.mu.Lock()
	l.late = max(l.late, time.Since(at))
	l.mu.Unlock()
	return ctx.Err() == nil
}

// add records the end of a request with a planned time and a thinking time.
func (l *sender) add(planned time.Time, k load.Kind, think time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	r := result{planned, now, k, now.Sub(planned) - think}
	l.results = append(l.results, r)
	if k == load.Answered {
		l.slowest = max(l.slowest, r.extra)
	}
}
