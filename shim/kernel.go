package shim

import (
	"os"

	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stderr"
)

// kernel is all that the loop asks of the system. Only the loop's goroutine
// calls it. The time is the one thing that does not come through here:
// testing/synctest makes it virtual where a test wants it so.
type kernel struct {
	signals <-chan os.Signal

	nudge   func() error // sends ourselves a CHLD
	prepare func() error // before the start: may fail, and takes what may later be denied
	start   func(argv, env []string) (pid int, err error)
	started func() // after the start: what the command need not wait for
	adopt   func() error

	kill func(pid int, s sig.Signal) error
	reap func() (pid int, status proc.Status, ok bool)

	line   func(text string) // to standard error; never waits
	broken func() bool       // whether the next PIPE comes from our own writing
	flush  func()
}

// system is the real one. The signals of named are caught before the start,
// beside those that always are; the rest when the command runs.
func system(named sig.Set) kernel {
	out := stderr.New(2)
	return kernel{
		signals: sig.Caught(),
		nudge:   func() error { return proc.Kill(os.Getpid(), sig.CHLD) },
		prepare: func() error {
			sig.Catch(named)
			proc.Settle()
			return proc.CheckDescriptors()
		},
		start: func(argv, env []string) (int, error) { return proc.Start(argv, proc.Restore(env)) },
		started: func() {
			sig.Catch(sig.Catchable())
			proc.LetGo()
		},
		adopt:  proc.Adopt,
		kill:   proc.Kill,
		reap:   proc.Reap,
		line:   out.Line,
		broken: out.Broke,
		flush:  out.Flush,
	}
}
