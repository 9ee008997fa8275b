// Guest is the other program of an initramfs beside lameduck. As PID 1 it does the
// work of a container runtime, and then executes lameduck; as lameduck's command guest
// is a server, or runs unit tests.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

func run() error {
	if os.Getpid() == 1 {
		return boot(os.Args[1:])
	}
	switch os.Args[1] {
	case "serve":
		return serve()
	case "orphans":
		return orphans()
	case "rooms":
		return rooms()
	}
	return fmt.Errorf("unknown command %q", os.Args[1])
}
