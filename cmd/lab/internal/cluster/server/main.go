// Server stands in for servers that a test does not have: a static program that behaves
// as HAProxy, nginx or an app by the name under which the program is called. Called as
// docker-entrypoint.sh, server executes the program that the arguments name. Under any
// other name server is a load.Server, which prints "ready"; on a signal server prints the signal
// and ends, gracefully on the signal that stops the real server gracefully, else at once,
// with all requests in flight. The name web catches no signal.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// graceful are the signals for a graceful stop.
var graceful = map[string]os.Signal{"haproxy": syscall.SIGUSR1, "nginx": syscall.SIGQUIT, "shop": syscall.SIGTERM}

// linger is how long answers on kept connections say close, as HAProxy's do.
const linger = time.Second

// upstream is the server in HAProxy's configuration.
var upstream = regexp.MustCompile(`(?m)^\s*server \S+ (\S+)`)

func main() {
	if err := run(filepath.Base(os.Args[0]), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(name string, args []string) error {
	if name == "docker-entrypoint.sh" {
		path, err := exec.LookPath(args[0])
		if err != nil {
			return err
		}
		return syscall.Exec(path, args, os.Environ())
	}
	addr, text := ":8080", ""
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--listen="); ok {
			addr = value
		} else if arg == "-f" { // HAProxy's configuration
			read, _ := os.ReadFile(args[i+1])
			text = string(read)
		}
	}
	s, err := load.Listen(addr)
	if err != nil {
		return err
	}
	if found := upstream.FindStringSubmatch(text); found != nil {
		s.Upstream = found[1]
	}
	signals := make(chan os.Signal, 1)
	if name != "web" {
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1)
	}
	go func() {
		got := <-signals
		fmt.Println("got", strings.TrimPrefix(unix.SignalName(got.(syscall.Signal)), "SIG"))
		if got != graceful[name] {
			os.Exit(0)
		}
		s.Stop(linger)
	}()
	fmt.Println("ready")
	s.Serve()
	return nil
}
