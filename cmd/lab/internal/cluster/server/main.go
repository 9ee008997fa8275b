// Server stands in for servers that a test does not have: a static program that behaves
// as HAProxy, nginx or an app by the name under which the program is called, and as the
// program that its arguments name if it is called docker-entrypoint.sh. It is a load.Server
// that ends on a signal: gracefully on the signal that stops the real server gracefully, else at
// once, with all requests in flight. The name web catches no signal.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
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
	s, err := load.Listen(addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if found := upstream.FindSubmatch(config); found != nil {
		s.Upstream = string(found[1])
	}
	signals := make(chan os.Signal, 1)
	if name != "web" {
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1)
	}
	go func() {
		if <-signals != graceful[name] {
			os.Exit(0)
		}
		s.Stop(linger)
	}()
	s.Serve()
}
