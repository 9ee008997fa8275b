//go:build linux

package shim

import (
	"fmt"
	"os"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/termlog"
)

// host is everything but the time that the loop asks of the operating system. Tests have
// another host. Only the loop's goroutine uses a host. testing/synctest makes time virtual.
type host struct {
	processes

	// next waits until a deadline for a signal that lameduck itself has not caused, forever if
	// the deadline is zero. At the deadline, or when a sample of the traffic is ready, next
	// returns 0. While it waits, next may reap children other than those awaited, unless the
	// first of these is 0.
	next func(deadline time.Time, awaited [2]int) sig.Signal
	// A process sent the latest s, rather than the kernel, and from outside of the PID namespace.
	sender func(s sig.Signal) (isProcess, isOutside bool)

	startSampling func(observe.Config) sampler
	snapshots     chan observe.Snapshot // of the sampler

	// ask sends a request, whose answer has a time limit. answers gets an error, or nil.
	ask     func(r *check.Request, limit time.Duration)
	answers chan error

	setHealthMode func(check.Mode)

	// While the command runs, writing waits for no reader and no volume.
	writeLine    func(lines ...string)
	writeTermlog func(lines ...string) error // replaces the previous lines; a first call checks the file, and may wait
	flush        func()                      // waits a moment until all is written
}

// processes is a *proc.Processes.
type processes interface {
	Start(c proc.Command) (pid int, err error)
	ReleaseInherited()
	Find(argv, env []string) error
	Reap() (pid int, status proc.Status)

	Kill(pid int, s sig.Signal) error
	KillDescendant(pid int, start uint64, s sig.Signal) error
	Descendants() []proc.Process
	Handled(p proc.Process) (handled, awaited, ignored sig.Set)
	Tracer() func(pid int) sig.Trace
	Program(pid int, withArguments bool) (exe string, argv []string)
	Ticks() uint64

	StopSelf(s sig.Signal)
	GiveTerminal(group int) bool
	RetakeTerminal(group int)
}

// sampler is an *observe.Sampler.
type sampler interface {
	Continue(searching bool) // a snapshot was handled; searching for a lull, samples are taken back to back
	SlowDown()               // the hold is over: samples only serve the report
}

// newHost returns the operating system as the host of a plan, and takes the resources that may be unavailable
// later; without them the host can only write lines. beside is the command of a hook, or 0. The health
// listener, each request and the termination log need a thread.
func newHost(p *plan.Plan, beside int) (host, error) {
	outs := newOutputs(p.JSON, p.Hook)
	log := termlog.New(p.TerminationLog)
	workDir, _ := os.Getwd()
	processes := &proc.Processes{ResetSignals: p.ResetSignals, Beside: beside, Dir: workDir}
	var own *health.Conns
	threads := 0
	for _, needed := range []bool{p.Health != nil, p.WaitURL != nil, p.OnStop.Request != nil} {
		if needed {
			threads++
			own = health.NewConns()
		}
	}
	if p.Stop.RunsSequence() && p.TerminationLog != NoTerminationLog {
		threads++
	}
	err := processes.Reserve(threads)
	var listener *health.Listener
	if spec := p.Health; spec != nil && err == nil {
		listener, err = health.Open(*spec, own)
		if err == nil {
			go listener.Serve()
		} else {
			err = fmt.Errorf("--health=%v (LAMEDUCK_HEALTH): %w", spec, err)
		}
	}
	snapshots := make(chan observe.Snapshot, 1)
	answers := make(chan error, 1)
	return host{
		processes: processes,
		next: func(deadline time.Time, awaited [2]int) sig.Signal {
			s := sigcatch.Next(deadline, awaited)
			for s == sig.PIPE && outs[0].CausedSIGPIPE() || s != 0 && processes.Released(s) {
				s = sigcatch.Next(deadline, awaited)
			}
			return s
		},
		sender: sigcatch.Sender,
		startSampling: func(c observe.Config) sampler {
			c.Own = own
			return observe.Start(c, snapshots)
		},
		snapshots: snapshots,
		ask: func(r *check.Request, limit time.Duration) {
			go func() {
				status, err := own.Ask(r, limit)
				if err == nil && status/100 != 2 {
					err = fmt.Errorf("the answer is %d", status)
				}
				answers <- err
				sigcatch.Wake()
			}()
		},
		answers:       answers,
		setHealthMode: listener.SetMode,
		writeLine:     outs.line,
		writeTermlog:  log.Write,
		flush: func() {
			log.Flush()
			outs.flush()
		},
	}, err
}
