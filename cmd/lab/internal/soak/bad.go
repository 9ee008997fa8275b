package soak

import (
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
	fault, words := args[0], args[1:]
	prestart()
	got := make(chan os.Signal, 1000)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdin = os.Stdin
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	if fault == "wakeups" {
		go func() {
			for range time.Tick(10 * time.Millisecond) {
			}
		}()
	}
	go func() {
		for s := range got {
			if s == syscall.SIGUSR1 {
				leak(fault)
			}
			cmd.Process.Signal(s)
		}
	}()
	reaped := -1 // any child
	if fault == "zombies" {
		reaped = cmd.Process.Pid
	}
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
	var started, ended sync.WaitGroup
	started.Add(8)
	for range 8 {
		ended.Go(func() {
			runtime.LockOSThread()
			started.Done()
			started.Wait()
			runtime.UnlockOSThread()
		})
	}
	ended.Wait()
}

var leaked []any

func leak(what string) {
	switch what {
	case "descriptors":
		if file, err := os.Open(os.DevNull); err == nil {
			leaked = append(leaked, file)
		}
	case "threads":
		go func() {
			runtime.LockOSThread()
			select {}
		}()
	case "memory":
		chunk := make([]byte, 1<<20)
		for i := 0; i < len(chunk); i += 4096 {
			chunk[i] = 1
		}
		leaked = append(leaked, chunk)
	}
}
