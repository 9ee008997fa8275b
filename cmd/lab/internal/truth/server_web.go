package truth

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coder/websocket"
)

// Servers of net/http with HTTP/2 beside HTTP/1.1, and a WebSocket at /ws.
var (
	goWeb       = &server{command: role("web")} // HTTP/2 without TLS
	goWebTLS    = &server{command: role("web", "tls"), tls: true}
	goEnding    = &server{command: role("web", "graceful")} // TERM means Shutdown
	goEndingTLS = &server{command: role("web", "tls", "graceful"), tls: true}
)

// serveWeb is a server with the words tls and graceful.
func serveWeb(words []string) error {
	site := &http.Server{Addr: fmt.Sprintf(":%d", port), Handler: newWeb(), Protocols: new(http.Protocols)}
	site.Protocols.SetHTTP1(true)
	site.Protocols.SetUnencryptedHTTP2(true)
	listen := site.ListenAndServe
	if slices.Contains(words, "tls") {
		certificate, err := newCertificate()
		if err != nil {
			return err
		}
		site.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
		site.Protocols.SetHTTP2(true)
		listen = func() error { return site.ListenAndServeTLS("", "") }
	}
	if !slices.Contains(words, "graceful") {
		return listen()
	}
	term, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go listen()
	<-term.Done()
	return site.Shutdown(context.Background())
}

// newWeb returns the handler of answers and WebSockets.
func newWeb() http.Handler {
	web := http.NewServeMux()
	web.HandleFunc("/", answer)
	web.HandleFunc("/ws", chat)
	return web
}

// chat serves a WebSocket. Each message is a command:
//
//	D    waits D and answers
//	D N  sends N messages, one each D
func chat(w http.ResponseWriter, r *http.Request) {
	socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	defer socket.CloseNow()
	for {
		_, text, err := socket.Read(r.Context())
		if err != nil {
			return
		}
		words := append(strings.Fields(string(text)), "1")
		for range number(words[1]) {
			time.Sleep(duration(words[0]))
			if socket.Write(r.Context(), websocket.MessageText, text) != nil {
				return
			}
		}
	}
}

// scripted returns the command of a server with a program of its own in the file.
func scripted(file, text string, words ...string) func(place) ([]string, error) {
	return func(at place) ([]string, error) {
		if err := os.WriteFile(at.dir+"/"+file, []byte(text), 0o644); err != nil {
			return nil, err
		}
		return configured(nil, words...)(at)
	}
}
