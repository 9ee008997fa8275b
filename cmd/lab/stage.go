package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// stage runs as PID 1 of a replica's namespaces: it waits until its network is
// there (descriptor 3 ends), and becomes the command.
func stage(address string, command []string) error {
	wire := os.NewFile(3, "wire")
	io.Copy(io.Discard, wire)
	wire.Close()
	if err := ownProc(); err != nil {
		return err
	}
	if err := up("lo", nil); err != nil {
		return err
	}
	if err := up("eth0", net.ParseIP(address)); err != nil {
		return err
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	return fmt.Errorf("cannot become %q: %w", path, syscall.Exec(path, command, os.Environ()))
}

// signalsAreTheirs leaves Ctrl-C to the lab inside, which gets it too.
func signalsAreTheirs() { signal.Ignore(syscall.SIGINT, syscall.SIGHUP) }
