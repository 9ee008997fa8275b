// Server stands in for servers that a test does not have: a static program that behaves
// as HAProxy, nginx or an app by the name under which the program is called. Called as
// docker-entrypoint.sh, server executes the program that the arguments name. Under any
// other name server is a load.Server, which prints "ready"; on a signal server prints the signal
// and ends, gracefully on the signal that stops the real server gracefully, else at once,
// with all requests in flight. The name web catches no signal.
package main

import (
	"flag"
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
	flags := flag.NewFlagSet(name, flag.ExitOnError)
	addr := flags.String("listen", ":8080", "the address to listen on")
	config := flags.String("f", "", "HAProxy's configuration")
	for _, flag := range []string{"W", "db"} { // HAProxy's: workers, foreground
		flags.Bool(flag, false, "ignored")
	}
	flags.String("g", "", "ignored: nginx's directives")
	flags.Parse(args)
	text, err := os.ReadFile(*config)
	if err != nil && *config != "" && !os.IsNotExist(err) {
		return fmt.Errorf("cannot read the configuration: %w", err)
	}
	s, err := load.Listen(*addr)
	if err != nil {
		return err
	}
	if found := upstream.FindSubmatch(text); found != nil {
		s.Upstream = string(found[1])
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
