// Server stands in for servers that podman cannot be given here. Called as
// docker-entrypoint.sh it executes the program that its arguments name; as any other
// it listens, says "ready", and on a signal says which, and ends: gracefully on the
// one that HAProxy or nginx would take so.
package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	if filepath.Base(os.Args[0]) == "docker-entrypoint.sh" {
		path, err := exec.LookPath(os.Args[1])
		if err == nil {
			err = syscall.Exec(path, os.Args[1:], os.Environ())
		}
		fail(err)
	}
	listener, err := net.Listen("tcp", ":8080")
	if err != nil {
		fail(err)
	}
	defer listener.Close()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1)
	fmt.Println("ready")
	names := map[os.Signal]string{syscall.SIGTERM: "TERM", syscall.SIGINT: "INT", syscall.SIGQUIT: "QUIT", syscall.SIGUSR1: "USR1"}
	fmt.Println("got", names[<-signals])
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
