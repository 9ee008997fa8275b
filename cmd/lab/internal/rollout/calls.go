package rollout

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// serveCalls serves gRPC at an address: a call takes as long as it says. TERM kills the server.
func serveCalls(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, call grpc.ServerStream) error {
		var takes durationpb.Duration
		if err := call.RecvMsg(&takes); err != nil {
			return err
		}
		time.Sleep(takes.AsDuration())
		return call.SendMsg(&emptypb.Empty{})
	})).Serve(l)
}

// keptChannels is how many channels a client of gRPC has, each of which keeps a connection.
const keptChannels = 8

// channels are a client of gRPC. They are used in turn.
type channels struct {
	all  []*grpc.ClientConn
	next chan int
}

// openChannels opens channels. pick returns the address of each connection.
func openChannels(pick func() string) *channels {
	c := &channels{next: make(chan int, 1)}
	for range keptChannels {
		c.all = append(c.all, must.Get(grpc.NewClient("passthrough:///pods", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", pick())
			}))))
	}
	c.next <- 0
	return c
}

// call makes a call that takes so long.
func (c *channels) call(takes time.Duration, deadline time.Time) load.Kind {
	turn := <-c.next
	c.next <- turn + 1
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	err := c.all[turn%len(c.all)].Invoke(ctx, "/lameduck.Rollout/Call", durationpb.New(takes), &emptypb.Empty{})
	switch status.Code(err) {
	case codes.OK:
		return load.Answered
	case codes.DeadlineExceeded:
		return load.Timeout
	case codes.Unavailable: // refused, or the connection ended
		return load.Cut
	}
	return load.Other
}

func (c *channels) Close() {
	for _, one := range c.all {
		one.Close()
	}
}
