package peers

import (
	"context"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// channel is a client of grpc-go with one connection.
type channel struct {
	cc     *grpc.ClientConn
	limit  time.Duration
	stream grpc.ClientStream // nil before the first message, and after the last
}

func (c *Client) channel() (Link, error) {
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return c.Dial(ctx, "tcp", addr)
		}),
	}
	if c.Ping > 0 {
		pings := keepalive.ClientParameters{Time: c.Ping, Timeout: 20 * time.Second, PermitWithoutStream: true}
		options = append(options, grpc.WithKeepaliveParams(pings))
	}
	cc, err := grpc.NewClient("passthrough:///"+c.Server, options...)
	return &channel{cc: cc, limit: c.Limit}, err
}

const grpcMethod = "/lameduck.Truth/Talk"

var bothWays = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

// Take sends messages for talk. "call D [NAME]" is a unary call, send, expect and fin are parts of
// a stream, and idle is a stream on which nothing happens, now and on later connections.
func (ch *channel) Take(step plays.Step) (err error) {
	switch step.Verb {
	case "call":
		ctx, cancel := context.WithTimeout(context.Background(), ch.limit)
		defer cancel()
		think, name, _ := strings.Cut(step.Arg, " ")
		return ch.cc.Invoke(ctx, grpcMethod, wrapperspb.String(think+" 1 "+name), &wrapperspb.BytesValue{})
	case "send":
		if ch.stream == nil {
			ch.stream, err = ch.cc.NewStream(context.Background(), bothWays, grpcMethod)
		}
		if err == nil {
			err = ch.stream.SendMsg(wrapperspb.String(step.Arg))
		}
		return err
	case "fin":
		return ch.stream.CloseSend()
	case "expect":
		for n := plays.Number(step.Arg); n > 0 && err == nil; n-- {
			err = ch.stream.RecvMsg(&wrapperspb.BytesValue{})
		}
		return err
	case "idle":
		go ch.idle()
		return nil
	case "close":
		return ch.cc.Close()
	}
	return unknown(step)
}

// idle opens a stream, and another when it ends, until the connection is closed for good.
func (ch *channel) idle() {
	var err error
	for status.Code(err) != codes.Canceled {
		var stream grpc.ClientStream
		stream, err = ch.cc.NewStream(context.Background(), bothWays, grpcMethod, grpc.WaitForReady(true))
		if err == nil && stream.SendMsg(wrapperspb.String("24h 1 idle")) == nil {
			stream.RecvMsg(&wrapperspb.BytesValue{})
		}
	}
}

// serveGRPC is a server of gRPC, with the words graceful, and ping: a PING after 3 s of silence.
func serveGRPC(listener net.Listener, words []string) {
	options := []grpc.ServerOption{
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.UnknownServiceHandler(talk),
	}
	if slices.Contains(words, "ping") {
		options = append(options, grpc.KeepaliveParams(keepalive.ServerParameters{Time: 3 * time.Second}))
	}
	site := grpc.NewServer(options...)
	onTerm(words, site.GracefulStop)
	must.Do(site.Serve(listener))
	site.GracefulStop() // waits for calls in flight
}

// talk answers each message "D N [NAME]" with N messages, one each D; see work.
func talk(_ any, stream grpc.ServerStream) error {
	for {
		request := &wrapperspb.StringValue{}
		if err := stream.RecvMsg(request); err != nil {
			return nil // the client's end
		}
		words := append(strings.Fields(request.Value), "")
		for range plays.Number(words[1]) {
			work(stream.Context(), words[0], words[2])
			if err := stream.SendMsg(wrapperspb.Bytes(make([]byte, 200))); err != nil {
				return err
			}
		}
	}
}
