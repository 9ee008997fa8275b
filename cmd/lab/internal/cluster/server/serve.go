package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"sync/atomic"
	"time"
)

const (
	think  = 20 * time.Millisecond // the time for an answer
	linger = time.Second           // answers on kept connections say close for so long
)

// newHandler returns a handler that answers, or a proxy if the configuration names a
// server.
func newHandler(config string) (http.Handler, error) {
	text, err := os.ReadFile(config)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	if server := regexp.MustCompile(`(?m)^\s*server \S+ (\S+)`).FindSubmatch(text); server != nil {
		return httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: string(server[1])}), nil
	}
	return http.HandlerFunc(answer), nil
}

// answer reads the whole request: an unread byte would end the connection in a reset.
func answer(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	time.Sleep(think)
	fmt.Fprint(w, "ok")
}

// server is an HTTP server with HAProxy's graceful stop: the listener closes at once, and
// answers on kept connections ask the client to close. Closing a kept connection here
// would cut off a request on the way.
type server struct {
	handler  http.Handler
	listener net.Listener
	http     http.Server
	stopping atomic.Bool
}

func (s *server) serve() {
	s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		s.handler.ServeHTTP(w, r)
	})
	if err := s.http.Serve(s.listener); !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
		fail(err)
	}
}

func (s *server) finish() {
	s.stopping.Store(true)
	s.listener.Close()
	time.Sleep(linger)
	s.http.Shutdown(context.Background())
}
