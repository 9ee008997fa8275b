package rollout

import (
	"context"
	"math/rand/v2"
	"net"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// requestTimeout bounds a request, beyond the server's thinking time.
const requestTimeout = 8 * time.Second

// A client that never lets go has so many connections, or channels of gRPC, each of which keeps one.
const (
	keptConns    = 24
	keptChannels = 8
)

// sender is the load of a trial.
type sender struct {
	load.Sender
	server *server
	seed   uint64
}

// run sends until ctx ends, and returns when all requests have ended. pick returns the address of
// each connection.
func (l *sender) run(ctx context.Context, pick func() string) {
	s := l.server
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, pick())
	}
	conns, channels := 0, make(chan peers.Link, keptChannels)
	switch {
	case s.has("keep"):
		conns = keptConns
	case s.has("grpc"):
		for range keptChannels {
			how := peers.Client{Protocol: "grpc", Server: "pods", Dial: dial, Limit: s.Max + requestTimeout}
			channels <- must.Get(how.Open())
		}
	}
	c := load.NewClient(conns, dial)
	defer c.Close()
	path, body := "/static?pause=1ms&think=", "" // in two parts, so that the answer can be cut short
	if s.has("post") {
		path, body = "/static?think=", "duck"
	}
	random := rand.New(rand.NewPCG(l.seed, 0))
	l.Send(ctx, func() (pause time.Duration, ask func(time.Time) load.Kind) {
		think := s.Min + time.Duration(random.Float64()*float64(s.Max-s.Min))
		gap := float64(time.Second) / s.Rate
		if s.has("random") { // the gaps of many independent clients, a Poisson process
			gap *= random.ExpFloat64()
		}
		return time.Duration(gap), func(planned time.Time) load.Kind {
			deadline := planned.Add(think + requestTimeout)
			switch {
			case s.has("websocket"): // those that are open last until the server ends
				return load.KindOf(c.Do(deadline, func(conn *load.Conn) error { return conn.Chat("quack") }))
			case s.has("grpc"):
				return call(channels, think)
			}
			kind := c.HTTP(path+think.Round(time.Millisecond).String(), body, deadline)
			if kind == load.Answered {
				l.Late(time.Since(planned) - think)
			}
			return kind
		}
	})
}

// call makes a call that takes so long, on the next of the channels.
func call(channels chan peers.Link, takes time.Duration) load.Kind {
	channel := <-channels
	channels <- channel
	err := channel.Take(plays.Step{Verb: "call", Arg: takes.String()})
	switch status.Code(err) {
	case codes.DeadlineExceeded:
		return load.Timeout
	case codes.Unavailable: // refused, or the connection ended
		return load.Cut
	}
	return load.KindOf(err)
}

// pause fails if ctx ends first.
func pause(ctx context.Context, d time.Duration) { must.Do(load.Sleep(ctx, d)) }
