// Bench measures lameduck beside other inits, all as PID 1 of namespaces of
// their own, in turns within one run, and says which budgets hold.
//
//	bench [-quick] [-traffic] [-idle=DURATION] LAMEDUCK
//
// Only ratios are judged: times are the machine's, and not ours. It exits with
// 0 if all budgets hold, 1 if one is missed, and 2 if it could not measure.
// Run it where little else runs; root is not needed where unprivileged user
// namespaces are allowed. On one processor (taskset -c 0 bench ...) it shows
// how much of a figure is threads that wake each other on others.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

// patience is how long all but the idling may take.
const patience = 10 * time.Minute

// ends are the signals that end us.
var ends = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE}

func main() {
	runtime.LockOSThread() // a parent-death signal goes by the thread that forked
	debug.SetGCPercent(-1) // nothing of ours runs beside what is measured
	quick := flag.Bool("quick", false, "fewer samples, and a shorter idle time, scaled to a minute")
	traffic := flag.Bool("traffic", false, "only looks at traffic, beside ss")
	idle := flag.Duration("idle", 0, "how long to idle (default 2m, with -quick 20s)")
	flag.Parse()
	effort := full
	if *quick {
		effort = brief
	}
	if *idle > 0 {
		effort.idle = *idle
	}
	if *traffic {
		effort.runs, effort.idle = 0, 0
	}
	switch {
	case flag.NArg() != 1:
		fmt.Fprintln(os.Stderr, "usage: bench [-quick] [-traffic] [-idle=DURATION] LAMEDUCK")
		os.Exit(2)
	case os.Geteuid() != 0:
		os.Exit(inUserNamespace())
	}
	os.Exit(run(flag.Arg(0), effort))
}

// inUserNamespace runs all of this again as root of a new user namespace.
func inUserNamespace() int {
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it cleans up
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		Pdeathsig:   syscall.SIGTERM,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if err := cmd.Run(); cmd.ProcessState == nil {
		return fail(fmt.Errorf("cannot make a user namespace, run it as root: %w", err))
	}
	return cmd.ProcessState.ExitCode()
}

// run measures, prints, and returns the exit code.
func run(lameduck string, e effort) (code int) {
	// Where /tmp is mounted noexec, GOTMPDIR is what lets `go run` work.
	dir, err := os.MkdirTemp(os.Getenv("GOTMPDIR"), "lameduck-bench-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	defer func() {
		switch why := recover().(type) {
		case nil:
		case failure:
			code = fail(why.error)
		default:
			panic(why)
		}
	}()
	go giveUp(dir, patience+e.idle)
	fmt.Fprintf(os.Stderr, "bench: this takes %v of idling, and up to three minutes more\n", e.idle)
	field := gather(dir, lameduck)
	f := measure(field, dir, e)
	if e.runs > 0 {
		printFigures(os.Stdout, field, columns, f)
	}
	printFigures(os.Stdout, []contender{{name: ss}, {name: ours}}, looks, f)
	if e.runs > 0 && e.idle < full.idle {
		fmt.Printf("\nThe idle time was %v; switches are scaled to a minute.\n", e.idle)
	}
	if !printBudgets(os.Stdout, f) {
		return 1
	}
	return 0
}

// giveUp ends the program on a signal, or when it takes too long. All that it
// has started goes with it, by a parent-death signal.
func giveUp(dir string, limit time.Duration) {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, ends...)
	err := errors.New("stopped")
	select {
	case <-stop:
	case <-time.After(limit):
		err = fmt.Errorf("not done after %v", limit)
	}
	os.RemoveAll(dir)
	os.Exit(fail(err))
}

// failure is why nothing can be measured. It is a panic's value: what fails is
// the whole run, wherever it happens.
type failure struct{ error }

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "bench:", err)
	return 2
}
