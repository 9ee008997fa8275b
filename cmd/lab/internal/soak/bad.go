package main

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

// bad is an init with one fault, "bad FAULT COMMAND [ARG...]", so that the soak can
// be seen to find it: each USR1 leaks something, or orphans are not reaped, or it
// wakes for nothing.
func bad(args []string) {
	fault, words := args[0], args[1:]
	settle()
	got := make(chan os.Signal, 1000)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	die(cmd.Start())
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
	of := -1
	if fault == "zombies" {
		of = cmd.Process.Pid
	}
	for {
		var status unix.WaitStatus
		if pid, _ := unix.Wait4(of, &status, 0, nil); pid == cmd.Process.Pid {
			os.Exit(status.ExitStatus())
		}
	}
}

// settle has the runtime start the threads that it may need, which it keeps, and
// open its epoll.
func settle() {
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
		file, err := os.Open(os.DevNull)
		die(err)
		leaked = append(leaked, file)
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
