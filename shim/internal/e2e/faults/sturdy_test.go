package faults_test

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// sturdy prints "got TERM" and "got WINCH", and obeys "exit CODE", as box's catch does. sturdy starts no thread after "ready", because
// a thread that cannot start would end the program in a full pids cgroup. On "fill" sturdy
// fills the cgroup with processes; on "bomb" a fork bomb fills the cgroup.
func sturdy([]string) {
	proc.ReserveThreads(2) // two for os/signal
	got := make(chan os.Signal, 100)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGWINCH)
	go func() {
		for s := range got {
			fmt.Println("got", sig.Signal(s.(syscall.Signal)))
		}
	}()
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); fmt.Println("did", in.Text()) {
		var code int
		switch n, _ := fmt.Sscanf(in.Text(), "exit %d", &code); {
		case n == 1:
			os.Exit(code)
		case in.Text() == "fill":
			fill()
		default:
			bomb()
		}
	}
	os.Exit(98) // the test is gone
}

// fork is fork(2). The child has one thread and half a Go runtime, and may only make raw
// system calls.
//
//go:norace
//go:nosplit
func fork() (pid int, ok bool) {
	r, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	return int(r), errno == 0
}

// fill starts processes that wait forever, until fork fails.
//
//go:norace
func fill() {
	for {
		switch pid, ok := fork(); {
		case !ok:
			return
		case pid == 0:
			for {
				unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
			}
		}
	}
}

// bomb starts a process that forks until fork fails, and then waits for a child's exit. Its
// children fork until fork fails, and then exit, so that a fork can succeed at times. bomb
// returns when the cgroup is full.
//
//go:norace
func bomb() {
	if pid, _ := fork(); pid != 0 {
		fill()
		return
	}
	first := true
	for {
		switch pid, ok := fork(); {
		case ok && pid == 0:
			first = false
		case !ok && !first:
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		case !ok:
			unix.RawSyscall6(unix.SYS_WAIT4, ^uintptr(0), 0, 0, 0, 0, 0)
		}
	}
}
