package rollout

import (
	"context"
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

// sender is the load of a trial.
type sender struct {
	load.Sender
	server   *server
	seed     uint64
	upgraded sync.Map // the connections that are WebSockets
}

// run sends until ctx ends, and returns when all requests have ended. pick returns the address of
// each connection.
func (l *sender) run(ctx context.Context, pick func() string) {
	s := l.server
	c := &load.Client{Pick: pick, Keep: s.has("keep")}
	defer c.Close()
	var calls *channels
	if s.has("grpc") {
		calls = openChannels(pick)
		defer calls.Close()
	}
	if s.has("conns") {
		c.Conns = keptConns
	}
	body := ""
	if s.has("post") {
		body = "duck"
	}
	random := rand.New(rand.NewPCG(l.seed, 0))
	l.Send(ctx, func() (pause time.Duration, ask func(time.Time) load.Kind) {
		think := s.min + time.Duration(random.Float64()*float64(s.max-s.min))
		gap := float64(time.Second) / s.rate
		if s.has("random") { // the gaps of many independent clients, a Poisson process
			gap *= random.ExpFloat64()
		}
		return time.Duration(gap), func(planned time.Time) load.Kind {
			deadline := planned.Add(think + requestTimeout)
			if s.has("websocket") {
				return l.chat(c, deadline)
			}
			if calls != nil {
				return calls.call(think, deadline)
			}
			kind := c.HTTP("/"+think.Round(time.Millisecond).String(), body, deadline)
			if kind == load.Answered {
				l.Late(time.Since(planned) - think)
			}
			return kind
		}
	})
}

// chat opens a WebSocket, or sends a message on one that is open. Open ones last until the server
// ends, and so no message fails.
func (l *sender) chat(c *load.Client, deadline time.Time) (kind load.Kind) {
	err := c.Do(deadline, func(conn *load.Conn) (again bool, err error) {
		kind = load.Answered
		if _, open := l.upgraded.LoadOrStore(conn, true); open {
			return conn.Chat() == nil, nil
		}
		kind = conn.Upgrade()
		return kind == load.Answered, nil
	})
	if err != nil {
		return load.KindOf(0, err)
	}
	return kind
}

// pause fails if ctx ends first.
func pause(ctx context.Context, d time.Duration) { must.Do(load.Sleep(ctx, d)) }
