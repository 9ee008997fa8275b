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
	think  = 20 * time.Millisecond // what an answer takes
	linger = time.Second           // how long kept connections are told to close
)

// newHandler answers, or is a proxy where the configuration names a server.
func newHandler(config string) (http.Handler, error) {
	if config == "" {
		return http.HandlerFunc(answer), nil
	}
	text, err := os.ReadFile(config)
	if os.IsNotExist(err) { // what does not ask for one, needs none
		return http.HandlerFunc(answer), nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration: %w", err)
	}
	if server := regexp.MustCompile(`(?m)^\s*server \S+ (\S+)`).FindSubmatch(text); server != nil {
		return httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: string(server[1])}), nil
	}
	return http.HandlerFunc(answer), nil
}

// answer reads all of the request, so that no connection ends in a reset that the
// answer did not call for.
func answer(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	time.Sleep(think)
	fmt.Fprint(w, "ok")
}

// server is an HTTP server whose graceful stop is HAProxy's: it closes its listener at
// once, and tells those whose connections are kept to close them. One that closed them
// by itself would meet requests on their way.
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
