package rollout

import (
	"context"
	"fmt"
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

// sender is the load of a trial.
type sender struct {
	load.Sender
	server *server
	scale  scale
	seed   uint64
}

// run sends until ctx ends, and returns when all requests have ended. pick returns the address of
// each connection.
func (l *sender) run(ctx context.Context, pick func() string) {
	if l.server.has("websocket") {
		l.chat(ctx, pick)
		return
	}
	c := &load.Client{Pick: pick, Keep: l.server.has("keep")}
	defer c.Close()
	if l.server.has("conns") {
		c.Conns = keptConns
	}
	body := ""
	if l.server.has("post") {
		body = "duck"
	}
	random := rand.New(rand.NewPCG(l.seed, 0))
	l.Send(ctx, func() (pause time.Duration, ask func(time.Time) load.Kind) {
		think := l.server.think(random, l.scale)
		return l.server.pause(random, l.scale), func(planned time.Time) load.Kind {
			kind := c.HTTP(fmt.Sprintf("/%.3fms", ms(think)), body, planned.Add(think+requestTimeout))
			if kind == load.Answered {
				l.Late(time.Since(planned) - think)
			}
			return kind
		}
	})
}

// pause fails if ctx ends first.
func pause(ctx context.Context, d time.Duration) { must.Do(load.Sleep(ctx, d)) }

// chatters keep a WebSocket each, and send a message every chatPause.
const (
	chatters  = 8
	chatPause = 400 * time.Millisecond
)

// chat is the load of long-lived connections. A connection counts as a request when
// opened, and so does each message. A connection that ends is lost, message included.
func (l *sender) chat(ctx context.Context, pick func() string) {
	var all sync.WaitGroup
	defer all.Wait()
	for i := range chatters {
		all.Go(func() { l.chatter(ctx, pick, l.Began.Add(l.scale.of(chatPause)*time.Duration(i)/chatters)) })
	}
}

func (l *sender) chatter(ctx context.Context, pick func() string, at time.Time) {
	var conn *load.Conn // the WebSocket, or nil
	for ; load.Sleep(ctx, time.Until(at)) == nil; at = at.Add(l.scale.of(chatPause)) {
		number := l.Begin(at)
		deadline := time.Now().Add(requestTimeout)
		kind := load.Answered
		var err error
		if conn == nil {
			if conn, err = load.Dial(pick(), deadline); err == nil {
				kind = conn.Upgrade()
			} else {
				kind = load.KindOf(0, err)
			}
		} else {
			conn.SetDeadline(deadline)
			if conn.Chat() != nil {
				kind = lost
			}
		}
		if kind != load.Answered && conn != nil {
			conn.Close()
			conn = nil
		}
		l.End(number, kind)
	}
	if conn != nil {
		conn.Close()
	}
}
