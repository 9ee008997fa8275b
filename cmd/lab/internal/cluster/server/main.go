// Server stands in for servers that a test does not have: a static program that behaves
// as HAProxy, nginx or an app by the name under which the program is called, and as the
// program that its arguments name if it is called docker-entrypoint.sh. It answers a request for
// /DURATION after that time, and ends on a signal: gracefully on the signal that stops the real server
// gracefully, else at once, with all requests in flight. The name web catches no signal.
package main

import (
	"cmp"
	"context"
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

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

// graceful are the signals for a graceful stop.
var graceful = map[string]os.Signal{"haproxy": syscall.SIGUSR1, "nginx": syscall.SIGQUIT, "shop": syscall.SIGTERM}

// linger is how long answers on kept connections say close, as HAProxy's do, so that no request crosses a close on the
// way.
const linger = time.Second

func main() {
	words := os.Args
	if filepath.Base(words[0]) == "docker-entrypoint.sh" {
		words = words[1:]
	}
	name, line := filepath.Base(words[0]), strings.Join(words, " ")
	addr := cmp.Or(match(`--listen=(\S+)`, line), ":8080")
	config, _ := os.ReadFile(match(`-f (\S+)`, line))
	listener := must.Get(net.Listen("tcp", addr))
	answer := func(w http.ResponseWriter, r *http.Request) {
		wait, _ := time.ParseDuration(r.URL.Path[1:]) // none for another path
		time.Sleep(wait)
		io.WriteString(w, "served")
	}
	if upstream := match(`(?m)^\s*server \S+ (\S+)`, string(config)); upstream != "" { // HAProxy's
		proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: upstream})
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

// match returns what a pattern finds in a text.
func match(pattern, text string) string {
	return append(regexp.MustCompile(pattern).FindStringSubmatch(text), "", "")[1]
}
