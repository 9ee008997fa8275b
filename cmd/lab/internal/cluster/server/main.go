// Server stands in for servers that a test does not have: a static program that behaves
// as HAProxy, nginx or an app by the name under which the program is called. Called as
// docker-entrypoint.sh, server executes the program that the arguments name. Under any
// other name server serves HTTP and prints "ready"; on a signal server prints the signal
// and ends, gracefully on the signal that stops the real server gracefully, else at once,
// with all requests in flight. The name web catches no signal.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// graceful are the signals for a graceful stop.
var graceful = map[string]os.Signal{"haproxy": syscall.SIGUSR1, "nginx": syscall.SIGQUIT, "shop": syscall.SIGTERM}

func main() {
	name := filepath.Base(os.Args[0])
	if name == "docker-entrypoint.sh" {
		path, err := exec.LookPath(os.Args[1])
		if err == nil {
			err = syscall.Exec(path, os.Args[1:], os.Environ())
		}
		fail(err)
	}
	flags := flag.NewFlagSet(name, flag.ExitOnError)
	addr := flags.String("listen", ":8080", "the address to listen on")
	config := flags.String("f", "", "HAProxy's configuration")
	for _, flag := range []string{"W", "db"} { // HAProxy's: workers, foreground
		flags.Bool(flag, false, "ignored")
	}
	flags.String("g", "", "ignored: nginx's directives")
	flags.Parse(os.Args[1:])
	handler, err := newHandler(*config)
	if err != nil {
		fail(err)
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		fail(err)
	}
	s := &server{handler: handler, listener: listener}
	signals := make(chan os.Signal, 1)
	if name != "web" {
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1)
	}
	go s.serve()
	fmt.Println("ready")
	got := <-signals
	fmt.Println("got", strings.TrimPrefix(unix.SignalName(got.(syscall.Signal)), "SIG"))
	if got == graceful[name] {
		s.finish()
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
