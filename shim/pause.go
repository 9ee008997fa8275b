package shim

import (
	"syscall"
)

// Pause runs no command: it keeps the namespaces of a pod, and reaps what comes
// to it, until TERM or INT. It returns the exit code, 0.
func Pause() int {
	k := system(0)
	k.started()
	for {
		for pid, _ := k.reap(); pid > 0; pid, _ = k.reap() {
		}
		switch <-k.signals {
		case syscall.SIGTERM, syscall.SIGINT:
			return 0
		}
	}
}
