package shim

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Pause runs no command: it keeps the namespaces of a pod, and reaps what comes
// to it, until TERM or INT. It returns the exit code, 0.
func Pause() int {
	k := system(&Config{TerminationLog: NoTerminationLog})
	k.started()
	for {
		for pid, _ := k.reap(); pid > 0; pid, _ = k.reap() {
		}
		switch k.next(time.Time{}) {
		case sig.TERM, sig.INT:
			return 0
		}
	}
}
