package truth

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// channel is a client of grpc-go with one connection.
type channel struct {
	cc     *grpc.ClientConn
	stream grpc.ClientStream // nil before the first message, and after the last
}

func (c *client) channel() (link, error) {
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return c.dial(ctx, "tcp", addr)
		}),
	}
	if c.t.c.server[len(c.t.c.server)-1] == "tls" {
		options = append(options, grpc.WithTransportCredentials(credentials.NewTLS(c.tls())))
	}
	if c.p.ping > 0 {
		pings := keepalive.ClientParameters{Time: c.p.ping, Timeout: 20 * s, PermitWithoutStream: true}
		options = append(options, grpc.WithKeepaliveParams(pings))
	}
	cc, err := grpc.NewClient("passthrough:///"+c.server(), options...)
	return &channel{cc: cc}, err
}

const grpcMethod = "/lameduck.Truth/Talk"

// take sends messages for talk. call is a unary call, and send, expect and fin are parts of
// a stream.
func (ch *channel) take(verb, arg string) (known bool, err error) {
	switch verb {
	case "call":
		err = ch.cc.Invoke(context.Background(), grpcMethod, wrapperspb.String(arg+" 1"), &wrapperspb.BytesValue{})
	case "send":
		if ch.stream == nil {
			both := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
			ch.stream, err = ch.cc.NewStream(context.Background(), both, grpcMethod)
		}
		if err == nil {
			err = ch.stream.SendMsg(wrapperspb.String(arg))
		}
	case "fin":
		err = ch.stream.CloseSend()
	case "expect":
		for range number(arg) {
			err = ch.stream.RecvMsg(&wrapperspb.BytesValue{})
			if err != nil {
				break
			}
		}
	case "close":
		err = ch.cc.Close()
	default:
		return false, nil
	}
	return true, err
}

// serveGRPC is a server of gRPC, with the words tls, graceful, and ping: a PING after 3 s
// of silence.
func serveGRPC(words []string) error {
	options := []grpc.ServerOption{
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.UnknownServiceHandler(talk),
	}
	if slices.Contains(words, "tls") {
		certificate, err := tls.LoadX509KeyPair("cert.pem", "cert.pem")
		if err != nil {
			return err
		}
		config := &tls.Config{Certificates: []tls.Certificate{certificate}}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	if slices.Contains(words, "ping") {
		options = append(options, grpc.KeepaliveParams(keepalive.ServerParameters{Time: 3 * time.Second}))
	}
	site := grpc.NewServer(options...)
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return err
	}
	if slices.Contains(words, "graceful") {
		term, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		context.AfterFunc(term, site.GracefulStop)
	}
	err = site.Serve(listener)
	site.GracefulStop() // waits for calls in flight
	return err
}

// talk answers each message "D N" with N messages, one each D.
func talk(_ any, stream grpc.ServerStream) error {
	for {
		request := &wrapperspb.StringValue{}
		if err := stream.RecvMsg(request); err != nil {
			return nil // the client's end
		}
		period, count, _ := strings.Cut(request.Value, " ")
		for range number(count) {
			time.Sleep(duration(period))
			if err := stream.SendMsg(wrapperspb.Bytes(make([]byte, 200))); err != nil {
				return err
			}
		}
	}
}
