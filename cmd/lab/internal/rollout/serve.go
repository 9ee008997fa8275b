package rollout

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// ready, and its address, is what a server says that was to find itself a port.
const ready = "ready "

// serve is a server that knows nothing of signals: TERM kills it at once, with
// whatever it was about to answer.
func serve(args []string) error {
	kind, listen := args[0], args[1]
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	if strings.HasSuffix(listen, ":0") {
		fmt.Println(ready + listener.Addr().String())
	}
	handler := map[string]http.HandlerFunc{"http": answer, "websocket": echo}[kind]
	return http.Serve(listener, handler)
}

// answer takes as long as the request says, and answers in two parts, so that
// an answer can be cut.
func answer(w http.ResponseWriter, r *http.Request) {
	think, _ := time.ParseDuration(r.FormValue("think"))
	time.Sleep(think)
	w.Header().Set("Content-Length", "6")
	fmt.Fprint(w, "ser")
	w.(http.Flusher).Flush()
	time.Sleep(time.Millisecond)
	fmt.Fprint(w, "ved")
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
