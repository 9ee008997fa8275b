// Forkwait runs a command and waits for it: the least that an init in Go can
// be, and so what a better one is compared with.
package main

import (
	"os"
	"syscall"
)

func main() {
	files := []uintptr{0, 1, 2}
	pid, err := syscall.ForkExec(os.Args[1], os.Args[1:], &syscall.ProcAttr{Env: os.Environ(), Files: files})
	if err != nil {
		os.Exit(127)
	}
	var status syscall.WaitStatus
	for err = syscall.EINTR; err == syscall.EINTR; {
		_, err = syscall.Wait4(pid, &status, 0, nil)
	}
	os.Exit(status.ExitStatus())
}
