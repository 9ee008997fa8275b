// Server stands in for servers that a test does not have: a static program that behaves
// as HAProxy, nginx or an app by the name under which the program is called, and as the
// program that its arguments name if it is called docker-entrypoint.sh. It answers a request for
// /DURATION after that time, and ends on a signal: gracefully on the signal that stops the real server
// gracefully, else at once, with all requests in flight. The name web catches no signal.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// graceful are the signals for a graceful stop.
var graceful = map[string]os.Signal{"haproxy": syscall.SIGUSR1, "nginx": syscall.SIGQUIT, "shop": syscall.SIGTERM}

// linger is how long answers on kept connections say close, as HAProxy's do.
const linger = time.Second

// upstream is the server in HAProxy's configuration.
var upstream = regexp.MustCompile(`(?m)^\s*server \S+ (\S+)`)

func main() {
	words := os.Args
	if filepath.Base(words[0]) == "docker-entrypoint.sh" {
		words = words[1:]
	}
	name := filepath.Base(words[0])
	addr, config := ":8080", []byte(nil)
	for i, word := range words {
		if value, ok := strings.CutPrefix(word, "--listen="); ok {
			addr = value
		} else if word == "-f" {
			config, _ = os.ReadFile(words[i+1])
		}
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	answer := func(w http.ResponseWriter, r *http.Request) {
		wait, _ := time.ParseDuration(r.URL.Path[1:]) // none for another path
		time.Sleep(wait)
		io.WriteString(w, "served")
	}
	if found := upstream.FindSubmatch(config); found != nil {
		proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: string(found[1])})
		proxy.Transport = &http.Transport{DisableKeepAlives: true}
		answer = proxy.ServeHTTP
	}
	var leaving atomic.Bool
	site := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		answer(w, r)
	})}
	signals := make(chan os.Signal, 1)
	if name != "web" {
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1)
	}
	go site.Serve(listener)
	if <-signals == graceful[name] {
		leaving.Store(true)
		listener.Close()
		time.Sleep(linger)
		site.Shutdown(context.Background())
	}
}
