// Demo shows what lameduck is for: the same server is stopped twice behind a
// balancer that learns of it late, first bare and then under lameduck, and the
// requests that fail are counted.
//
//	demo LAMEDUCK
//
// It exits with 0 only if requests failed without lameduck and none with it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

const serverPackage = "github.com/lameduck-init/lameduck/testdata/server"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: demo LAMEDUCK")
		os.Exit(2)
	}
	// A parent-death signal goes by the thread that forked, not the process.
	runtime.LockOSThread()
	// PIPE: in `make demo | head` there is still something to clean up.
	ctx, stop := signal.NotifyContext(context.Background(),
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	err := run(ctx, os.Args[1])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, lameduck string) error {
	lameduck, err := filepath.Abs(lameduck)
	if err != nil {
		return err
	}
	// Where /tmp is mounted noexec, GOTMPDIR is what lets `go run` work.
	dir, err := os.MkdirTemp(os.Getenv("GOTMPDIR"), "lameduck-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server := filepath.Join(dir, "server")
	if err := build(ctx, server); err != nil {
		return err
	}
	return show(ctx, lameduck, server)
}

func build(ctx context.Context, server string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", server, serverPackage)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot build the server: %w", err)
	}
	return nil
}

func show(ctx context.Context, lameduck, server string) error {
	listen, hold := "127.0.0.1:0", fmt.Sprintf("--delay=%v", delay)
	p := newPaper(os.Stdout)
	p.intro()
	p.title("bare", "server")
	bare, err := play(ctx, p, server, server, listen)
	if err != nil {
		return err
	}
	p.title("under lameduck", "lameduck "+hold+" -- server")
	held, err := play(ctx, p, server, lameduck, hold, "--", server, listen)
	if err != nil {
		return err
	}
	p.printf("\n")
	p.summary("bare", bare)
	p.summary("under lameduck", held)
	return judge(bare.tally.failed(), held.tally.failed())
}

func judge(bare, held int) error {
	if bare == 0 {
		return errors.New("unexpected: no request failed without lameduck")
	}
	if held > 0 {
		return fmt.Errorf("unexpected: %d requests failed under lameduck", held)
	}
	return nil
}
