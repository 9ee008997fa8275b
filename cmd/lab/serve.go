package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// serve is a server that knows nothing of signals: TERM kills it at once, with
// whatever it was about to answer.
func serve(kind string) error {
	handler := map[string]http.HandlerFunc{"http": answer, "websocket": echo}[kind]
	return http.ListenAndServe(fmt.Sprintf(":%d", port), handler)
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
