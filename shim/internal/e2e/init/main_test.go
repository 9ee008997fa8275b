// Package init_test tests the duties of a PID 1: processes, signals, what the command
// inherits, the terminal, and the time that lameduck takes while nothing happens.
package init_test

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
)

func TestMain(m *testing.M) {
	box.Main(m, map[string]func([]string){"leftover": leftover, "parent": parent})
}

// leftover exits 0.3 s after a TERM, or never if args have "stubborn".
func leftover(args []string) {
	if slices.Contains(args, "setsid") {
		_, err := unix.Setsid()
		box.Die(err)
	}
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGTERM)
	fmt.Println(args[0], "up")
	<-got
	if slices.Contains(args, "stubborn") {
		time.Sleep(time.Hour) // until a KILL
	}
	time.Sleep(300 * time.Millisecond) // a slow exit, for which --linger has to wait
	fmt.Println(args[0], "done")
}

// parent starts a program, and waits to be killed.
func parent(args []string) {
	runtime.LockOSThread() // PR_SET_PDEATHSIG is sent at the end of the thread that forked
	_, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	box.Die(err)
	time.Sleep(time.Hour) // until a KILL
}
