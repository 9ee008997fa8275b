package truth

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// channel is a client of gRPC with one connection.
type channel struct {
	t  *trial
	cc *grpc.ClientConn
}

// channel returns a client. The first call connects.
func (c *client) channel(options ...grpc.DialOption) *channel {
	secrets := insecure.NewCredentials()
	if c.t.c.server.tls {
		secrets = credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
	}
	options = append(options, grpc.WithTransportCredentials(secrets), grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		return c.dialContext(ctx, "tcp", addr)
	}))
	return &channel{c.t, must(grpc.NewClient("passthrough:///"+serverAddr(), options...))}
}

// pinging makes a client send a PING after 10 s of silence, the shortest time in grpc-go
// allows.
func pinging() grpc.DialOption {
	return grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * s, Timeout: 20 * s, PermitWithoutStream: true})
}

// call makes a counted unary call.
func (ch *channel) call(takes time.Duration) {
	ch.t.real(func() error { return ch.invoke(takes) })
}

func (ch *channel) invoke(takes time.Duration) error {
	return ch.cc.Invoke(context.Background(), "/"+grpcName+"/Answer", durationpb.New(takes), &wrapperspb.BytesValue{})
}

// stream receives count messages, each period one: a counted request. The server ends the
// call one period later.
func (ch *channel) stream(count int, period time.Duration) {
	ch.t.real(func() error { return ch.receive(count, period, count) })
}

// endless receives count messages of a stream with more, and cancels the call: a counted
// request.
func (ch *channel) endless(count int, period time.Duration) {
	ch.t.real(func() error { return ch.receive(count, period, 1000) })
}

// receive asks for messages and receives count.
func (ch *channel) receive(count int, period time.Duration, messages int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := ch.cc.NewStream(ctx, &grpcService.Streams[0], "/"+grpcName+"/Stream")
	if err != nil {
		return err
	}
	if err := stream.SendMsg(wrapperspb.String(fmt.Sprintf("%v %d", period, messages))); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for range count {
		if err := stream.RecvMsg(&wrapperspb.BytesValue{}); err != nil {
			return err
		}
	}
	if count < messages {
		return nil
	}
	if err := stream.RecvMsg(&wrapperspb.BytesValue{}); err != io.EOF {
		return fmt.Errorf("want the end of the stream: %w", err)
	}
	return nil
}

// send sends count messages, one each period, and waits for the counted answer.
func (ch *channel) send(count int, period time.Duration) {
	ch.t.real(func() error {
		stream, err := ch.cc.NewStream(context.Background(), &grpcService.Streams[1], "/"+grpcName+"/Collect")
		if err != nil {
			return err
		}
		for range count {
			if err := stream.SendMsg(grpcMessage); err != nil {
				return err
			}
			ch.t.sleep(period)
		}
		if err := stream.CloseSend(); err != nil {
			return err
		}
		return stream.RecvMsg(&wrapperspb.BytesValue{})
	})
}

// health checks the server's health as the kubelet does, without counting.
func (ch *channel) health() {
	_, err := grpc_health_v1.NewHealthClient(ch.cc).Check(context.Background(), &grpc_health_v1.HealthCheckRequest{})
	ch.t.spare(err)
}

func (ch *channel) stop() { ch.cc.Close() }
