// Demo is the demo of the laboratory as a program of its own, which is soon compiled: package
// rollout does without net/http, whose TLS takes longer to compile than the demo to play.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/rollout"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 1 && args[0] == "rollout" {
		return rollout.Roles[args[1]](args[2:])
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	return rollout.Demo(ctx, args, os.Stdout)
}
