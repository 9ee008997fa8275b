package kept

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Roles are the programs of the laboratory, by the first argument.
var Roles = map[string]func(args []string) error{"serve": serve}

// serve is a server: its kind is http, which includes HTTP/2 and WebSockets, tls or grpc.
// TERM kills it at once.
func serve(args []string) error {
	listener, err := net.Listen("tcp", args[1])
	if err != nil {
		return err
	}
	handler := http.NewServeMux()
	handler.HandleFunc("/app", answer)
	handler.HandleFunc("/ws", chat)
	switch args[0] {
	case "grpc":
		return grpc.NewServer(grpc.UnknownServiceHandler(answerGRPC)).Serve(listener)
	case "tls":
		site := httptest.NewUnstartedServer(handler) // it has a certificate
		site.Listener = listener
		site.EnableHTTP2 = true
		site.StartTLS()
		select {}
	}
	site := &http.Server{Handler: handler, Protocols: new(http.Protocols)}
	site.Protocols.SetHTTP1(true)
	site.Protocols.SetUnencryptedHTTP2(true)
	return site.Serve(listener)
}

// process prints the name of a request, and takes the time that the request demands. Like
// handlers that pass the context on, it gives up if the client seems gone, and returns false.
func process(ctx context.Context, name, think string) bool {
	fmt.Println(name)
	wait, _ := time.ParseDuration(think)
	select {
	case <-time.After(wait):
		return true
	case <-ctx.Done():
		return false
	}
}

func answer(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	query := r.URL.Query()
	if !process(r.Context(), query.Get("name"), query.Get("think")) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprint(w, "served")
}

// chat answers the messages of a WebSocket, each a name and a time.
func chat(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	for err == nil {
		var kind websocket.MessageType
		var text []byte
		if kind, text, err = conn.Read(r.Context()); err != nil {
			return
		}
		var name, think string
		fmt.Sscan(string(text), &name, &think)
		process(r.Context(), name, think)
		err = conn.Write(context.Background(), kind, []byte("served"))
	}
}

// answerGRPC answers a call with a name and a time. The call "idle" lasts as long as the
// connection.
func answerGRPC(_ any, stream grpc.ServerStream) error {
	text := &wrapperspb.StringValue{}
	if err := stream.RecvMsg(text); err != nil {
		return err
	}
	if text.Value == "idle" {
		<-stream.Context().Done()
		return nil
	}
	var name, think string
	fmt.Sscan(text.Value, &name, &think)
	process(stream.Context(), name, think)
	return stream.SendMsg(wrapperspb.String("served"))
}
