package stage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Commands are subcommands by name.
type Commands map[string]func(ctx context.Context, args []string, out io.Writer) error

// Roles are the programs to be started by subcommands alone, by the subcommand's name and the first
// argument.
type Roles map[string]map[string]func(args []string) error

// Main runs a subcommand or a role, and exits.
func Main(args []string, commands Commands, roles Roles) {
	err := run(args, commands, roles)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(args []string, commands Commands, roles Roles) error {
	if len(args) > 1 {
		// Roles have their own handlers of signals: a server shall die on TERM.
		if role := roles[args[0]][args[1]]; role != nil {
			return role(args[2:])
		}
	}
	command, known := commands[args[0]]
	if !known {
		return fmt.Errorf("unknown command %q: see lab help", args[0])
	}
	// SIGPIPE too: when the reader of the output goes away, namespaces and files remain
	// to be cleaned up.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	return command(ctx, args[1:], os.Stdout)
}

// Beside does jobs, so many at a time, and returns when all have ended. It begins no more when ctx
// has ended, and none sooner than stagger after another, since trials are busy at their beginning,
// and would stay in step.
func Beside[J any](ctx context.Context, jobs []J, atATime int, stagger time.Duration, do func(J)) {
	places := make(chan bool, atATime)
	var all sync.WaitGroup
	defer all.Wait()
	for _, job := range jobs {
		places <- true
		if ctx.Err() != nil {
			return
		}
		all.Go(func() {
			do(job)
			<-places
		})
		time.Sleep(stagger)
	}
}
