package rollout

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/coder/websocket"
)

// serve is a server. All kinds but graceful have no signal handlers: TERM kills the server
// at once, with all requests in flight.
func serve(args []string) error {
	kind, listen := args[0], args[1]
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	handler := map[string]http.HandlerFunc{"http": answer, "websocket": echo, "post": accept, "graceful": accept}[kind]
	s := &http.Server{Handler: handler}
	if kind == "graceful" {
		return serveUntilTERM(s, listener)
	}
	return s.Serve(listener)
}

// serveUntilTERM serves until TERM, and then as Shutdown does: requests in flight are
// answered, and kept connections closed.
func serveUntilTERM(s *http.Server, listener net.Listener) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go s.Serve(listener)
	<-ctx.Done()
	return s.Shutdown(context.Background())
}

// answer waits as the request demands, and answers in two parts, so that an answer can be
// cut short.
func answer(w http.ResponseWriter, r *http.Request) {
	think, _ := time.ParseDuration(r.FormValue("think"))
	time.Sleep(think)
	w.Header().Set("Content-Length", "6")
	fmt.Fprint(w, "ser")
	w.(http.Flusher).Flush()
	time.Sleep(time.Millisecond)
	fmt.Fprint(w, "ved")
}

// accept waits as the request demands, and answers in one piece.
func accept(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	think, _ := time.ParseDuration(r.URL.Query().Get("think"))
	time.Sleep(think)
	fmt.Fprint(w, "served")
}

// echo sends every message back.
func echo(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	for {
		kind, message, err := conn.Read(r.Context())
		if err != nil || conn.Write(r.Context(), kind, message) != nil {
			return
		}
	}
}
