package truth

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Servers of grpc-go.
var (
	grpcServer    = &server{command: role("grpc")}
	grpcTLS       = &server{command: role("grpc", "tls"), tls: true}
	grpcGraceful  = &server{command: role("grpc", "graceful")} // TERM means GracefulStop
	grpcKeepalive = &server{command: role("grpc", "ping")}     // sends a PING after 3 s of silence
)

// serveGRPC serves three methods: Answer takes the requested duration, Stream is asked for
// "PERIOD COUNT" and sends as many messages, and Collect reads messages and answers at the
// end.
func serveGRPC(words []string) error {
	options := []grpc.ServerOption{grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true})}
	if slices.Contains(words, "tls") {
		certificate, err := newCertificate()
		if err != nil {
			return err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{certificate}})))
	}
	if slices.Contains(words, "ping") {
		options = append(options, grpc.KeepaliveParams(keepalive.ServerParameters{Time: 3 * time.Second}))
	}
	site := grpc.NewServer(options...)
	site.RegisterService(&grpcService, nil)
	grpc_health_v1.RegisterHealthServer(site, health.NewServer())
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
	if err == nil {
		os.Exit(0)
	}
	return err
}

const grpcName = "lameduck.Truth"

var grpcService = grpc.ServiceDesc{
	ServiceName: grpcName,
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Answer", Handler: grpcAnswer}},
	Streams: []grpc.StreamDesc{
		{StreamName: "Stream", Handler: grpcStream, ServerStreams: true},
		{StreamName: "Collect", Handler: grpcCollect, ClientStreams: true},
	},
}

var grpcMessage = wrapperspb.Bytes(make([]byte, 200))

func grpcAnswer(_ any, _ context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	think := &durationpb.Duration{}
	if err := read(think); err != nil {
		return nil, err
	}
	time.Sleep(think.AsDuration())
	return grpcMessage, nil
}

func grpcStream(_ any, stream grpc.ServerStream) error {
	request := &wrapperspb.StringValue{}
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	period, count, _ := strings.Cut(request.Value, " ")
	for range number(count) {
		if err := stream.SendMsg(grpcMessage); err != nil {
			return err
		}
		time.Sleep(duration(period))
	}
	return nil
}

func grpcCollect(_ any, stream grpc.ServerStream) error {
	for stream.RecvMsg(&wrapperspb.BytesValue{}) == nil {
	}
	return stream.SendMsg(grpcMessage)
}
