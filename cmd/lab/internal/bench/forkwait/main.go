// Forkwait runs a command and waits for the end: the smallest init that Go can give, and
// so the reference for memory.
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
