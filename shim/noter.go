package shim

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
)

// noter writes the termination log on a goroutine of its own: a volume that hangs
// shall keep nobody from being stopped, or reaped.
type noter struct {
	log   *termlog
	texts chan string // the newest alone; nil: none was written yet
	left  atomic.Int32
	fault atomic.Pointer[error] // the last one
}

// note has text written in place of the last one, and is what went wrong before.
// Until there is a text there is no goroutine, and the fault is told at once.
func (n *noter) note(text string) error {
	if n.texts == nil {
		if text == "" {
			return n.log.write("")
		}
		n.texts = make(chan string, 1)
		go n.serve()
	}
	n.left.Add(1)
	select {
	case <-n.texts:
		n.left.Add(-1)
	default:
	}
	n.texts <- quote.Line(text)
	if err := n.fault.Load(); err != nil {
		return *err
	}
	return nil
}

func (n *noter) serve() {
	for text := range n.texts {
		if err := n.log.write(text); err != nil {
			n.fault.Store(&err)
		}
		n.left.Add(-1)
	}
}

// flush waits a moment until all is written. It waits in the kernel: Go's timers would
// need a thread to look at them.
func (n *noter) flush() {
	for end := time.Now().Add(200 * time.Millisecond); n.left.Load() > 0 && time.Now().Before(end); {
		unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
	}
}
