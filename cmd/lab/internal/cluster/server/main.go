// Server stands in for servers that a test cannot be given: a static program that is
// HAProxy, nginx or an app by the name it is called by. Called as
// docker-entrypoint.sh it executes the program that its arguments name; as any other
// it serves HTTP, says "ready", and on a signal says which, and ends: gracefully on
// the one that this server would take so, else at once, with all that it was
// answering. As web it takes none so, and says nothing.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

// graceful are the signals that let each finish.
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
	addr := flags.String("listen", ":8080", "where it listens")
	config := flags.String("f", "", "HAProxy's configuration")
	for _, flag := range []string{"W", "db"} { // HAProxy's: workers, and in the foreground
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
	names := map[os.Signal]string{syscall.SIGTERM: "TERM", syscall.SIGINT: "INT", syscall.SIGQUIT: "QUIT", syscall.SIGUSR1: "USR1"}
	got := <-signals
	fmt.Println("got", names[got])
	if got == graceful[name] {
		s.finish()
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
