package soak

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bad is an init with one fault, "bad FAULT COMMAND [ARG...]", for a test that
// the soak finds faults: each USR1 leaks a resource, or orphans are not reaped, or
// a timer wakes the init all the time.
func bad(args []string) error {
	fault := args[0]
	prestart()
	got := make(chan os.Signal, 1000)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH)
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	reaped := -1 // any child
	switch fault {
	case "zombies":
		reaped = cmd.Process.Pid
	case "wakeups":
		time.AfterFunc(0, func() {
			for range time.Tick(10 * time.Millisecond) {
			}
		})
	}
	go func() {
		for s := range got {
			if s == syscall.SIGUSR1 {
				leak(fault)
			}
			cmd.Process.Signal(s)
		}
	}()
	for {
		var status unix.WaitStatus
		if pid, _ := unix.Wait4(reaped, &status, 0, nil); pid == cmd.Process.Pid {
			os.Exit(status.ExitStatus())
		}
	}
}

// prestart makes Go's runtime start all threads and open the epoll.
// The runtime keeps both.
func prestart() {
	runtime.GOMAXPROCS(1)
	<-time.After(1)
	var threads sync.WaitGroup
	threads.Add(8)
	for range 8 {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			threads.Done()
			threads.Wait()
		}()
	}
	threads.Wait()
}

var leaked [][]byte

func leak(what string) {
	switch what {
	case "descriptors":
		unix.Dup(0)
	case "threads":
		go func() {
			runtime.LockOSThread()
			select {}
		}()
	case "memory":
		leaked = append(leaked, bytes.Repeat([]byte{1}, 1<<20))
	}
}
