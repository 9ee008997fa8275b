package rollout

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// requestTimeout bounds a request, beyond the server's thinking time.
const requestTimeout = 8 * time.Second

// keptConns is the size of the pool of a client that never lets go.
const keptConns = 24

// lost is a long-lived connection that ended, with the messages on it. Lost connections
// are counted apart from the requests.
const lost load.Kind = "lost"

// result is how one request ended.
type result struct {
	planned time.Time
	at      time.Time
	kind    load.Kind
}

// sender is an open-loop load: requests are sent at planned times, whatever becomes of
// earlier requests.
type sender struct {
	server *server
	scale  scale
	seed   uint64
	pick   func() string // the address of each connection

	mu      sync.Mutex // every request has a goroutine, and the screen shows the results
	began   time.Time
	results []result
	late    time.Duration // the longest delay behind the plan, or of an answer
}

// reset begins a run.
func (l *sender) reset(b balancer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pick, l.began, l.results, l.late = b.pick, time.Now(), nil, 0
}

// run sends until ctx ends, and returns when all requests have ended.
func (l *sender) run(ctx context.Context) {
	if l.server.has("websocket") {
		l.chat(ctx)
		return
	}
	c := &load.Client{Pick: l.pick, Keep: l.server.has("keep")}
	defer c.Close()
	if l.server.has("conns") {
		c.Conns = keptConns
	}
	body := ""
	if l.server.has("post") {
		body = "duck"
	}
	random := rand.New(rand.NewPCG(l.seed, 0))
	var all sync.WaitGroup
	defer all.Wait()
	for at := l.began; l.sleep(ctx, at); at = at.Add(l.server.pause(random, l.scale)) {
		think := l.server.think(random, l.scale)
		all.Go(func() {
			l.add(at, c.HTTP(fmt.Sprintf("/%.3fms", ms(think)), body, at.Add(think+requestTimeout)), think)
		})
	}
}

// sleep sleeps until a planned time, and reports false at the end.
func (l *sender) sleep(ctx context.Context, at time.Time) bool {
	if sleep(ctx, time.Until(at)) != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = max(l.late, time.Since(at))
	return true
}

// sleep returns an error if ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pause fails if ctx ends first.
func pause(ctx context.Context, d time.Duration) { must.Do(sleep(ctx, d)) }

// add records the end of a request with a planned time and a thinking time.
func (l *sender) add(planned time.Time, k load.Kind, think time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := result{planned, time.Now(), k}
	l.results = append(l.results, r)
	if k == load.Answered {
		l.late = max(l.late, r.at.Sub(planned)-think)
	}
}

// chatters keep a WebSocket each, and send a message every chatPause.
const (
	chatters  = 8
	chatPause = 400 * time.Millisecond
)

// The handshake with the key of RFC 6455's example, and a message, which is masked with zeros
// on the way to the server.
const (
	upgrade = "GET / HTTP/1.1\r\nHost: lab\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	upgraded = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
	message = "\x81\x85\x00\x00\x00\x00quack"
	echo    = "\x81\x05quack"
)

// chat is the load of long-lived connections. A connection counts as a request when
// opened, and so does each message. A connection that ends is lost, message included.
func (l *sender) chat(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for i := range chatters {
		at := l.began.Add(l.scale.of(chatPause) * time.Duration(i) / chatters)
		all.Go(func() { l.chatter(ctx, at) })
	}
}

func (l *sender) chatter(ctx context.Context, at time.Time) {
	var conn *load.Conn // the WebSocket, or nil
	for ; l.sleep(ctx, at); at = at.Add(l.scale.of(chatPause)) {
		began := time.Now()
		deadline := began.Add(requestTimeout)
		kind := load.Answered
		if conn == nil {
			var status int
			var err error
			if conn, err = load.Dial(l.pick(), deadline); err == nil {
				io.WriteString(conn, upgrade)
				status, _, err = conn.Head()
			}
			kind = load.KindOf(status, err)
		} else {
			conn.SetDeadline(deadline)
			io.WriteString(conn, message)
			if _, err := io.ReadFull(conn.In, make([]byte, len(echo))); err != nil {
				kind = lost
			}
		}
		if kind != load.Answered && conn != nil {
			conn.Close()
			conn = nil
		}
		l.add(began, kind, 0)
	}
	if conn != nil {
		conn.Close()
	}
}
