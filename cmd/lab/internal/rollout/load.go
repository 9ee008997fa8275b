package rollout

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

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
	addr   string
	pick   func() string // the address of each connection, or nil
	server *server
	scale  scale
	seed   uint64
	began  time.Time

	mu      sync.Mutex // every request has a goroutine
	results []result
	late    time.Duration // the longest delay behind the plan, or of an answer
}

// run sends until ctx ends, and returns when all requests have ended.
func (l *sender) run(ctx context.Context) {
	if l.server.has("websocket") {
		l.chat(ctx)
		return
	}
	c := &load.Client{Addr: l.addr, Pick: l.pick, Keep: l.server.has("keep")}
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
	if pauseFor(ctx, time.Until(at)) != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = max(l.late, time.Since(at))
	return true
}

// pauseFor returns an error if ctx ends first.
func pauseFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

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
	c := &load.Client{Addr: l.addr, Keep: true}
	defer c.Close()
	var mine *load.Conn // the WebSocket, or nil
	for ; l.sleep(ctx, at); at = at.Add(l.scale.of(chatPause)) {
		began, status := time.Now(), 0
		had := mine != nil
		err := c.Do(began.Add(requestTimeout), func(conn *load.Conn) (again bool, err error) {
			switch mine {
			case nil:
				mine = conn
				io.WriteString(conn, upgrade)
				status, _, err = conn.Head()
				return true, err
			case conn:
				io.WriteString(conn, message)
				_, err = io.ReadFull(conn.In, make([]byte, len(echo)))
				return true, err
			}
			return false, io.EOF // the WebSocket was closed, and this is another connection
		})
		kind := load.KindOf(status, err)
		if kind != load.Answered {
			mine = nil
			if had {
				kind = lost
			}
		}
		l.add(began, kind, 0)
	}
}

// probePeriod is the default period of Kubernetes.
const probePeriod = 10 * time.Second

// probe makes the kubelet's readiness probes of a replica until the replica is gone: a
// connection each, from the clients' address.
func (a *arena) probe(ctx context.Context, r *replica) {
	c := &load.Client{Addr: r.addr}
	ticks := time.Tick(a.o.scale.of(probePeriod))
	for {
		select {
		case <-r.gone:
			return
		case <-ctx.Done():
			return
		case <-ticks:
			c.HTTP("/0s", "", time.Now().Add(time.Second))
		}
	}
}
