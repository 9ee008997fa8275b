//go:build linux && faults

package shim

import (
	"os"
	"sync/atomic"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// faulty returns a host of which the call that FAULT_AT names panics, from the start of the command on,
// or that of the hold of a hook.
func faulty(h host) host {
	at := os.Getenv("FAULT_AT")
	var started atomic.Bool
	fault := func(call string) {
		if call == at && started.Load() {
			panic("at " + call)
		}
	}
	next, fromOutside, sampling, ask := h.next, h.fromOutside, h.startSampling, h.ask
	line, termlog := h.writeLine, h.writeTermlog
	h.processes = faultyProcesses{h.processes, fault, &started}
	h.next = func(deadline time.Time, awaited [2]int) sig.Signal {
		fault("next")
		return next(deadline, awaited)
	}
	h.fromOutside = func(s sig.Signal) bool { fault("fromOutside"); return fromOutside(s) }
	h.startSampling = func(c observe.Config) sampler {
		started.Store(true)
		fault("startSampling")
		wake, sampled := c.Wake, false
		c.Wake = func() {
			wake()
			if at == "sampler" && !sampled {
				sampled = true
				panic("in the sampler")
			}
		}
		return sampling(c)
	}
	h.ask = func(r *check.Request, limit time.Duration) { fault("ask"); ask(r, limit) }
	h.writeLine = func(lines ...string) { fault("writeLine"); line(lines...) }
	h.writeTermlog = func(lines ...string) error { fault("writeTermlog"); return termlog(lines...) }
	return h
}

type faultyProcesses struct {
	processes
	fault   func(call string)
	started *atomic.Bool
}

func (f faultyProcesses) ReleaseInherited() {
	f.processes.ReleaseInherited()
	f.started.Store(true)
	f.fault("ReleaseInherited")
}

func (f faultyProcesses) Reap() (int, proc.Status) {
	pid, status := f.processes.Reap()
	f.fault("Reap")
	return pid, status
}

func (f faultyProcesses) Kill(pid int, s sig.Signal) error {
	f.fault("Kill")
	return f.processes.Kill(pid, s)
}

func (f faultyProcesses) Handled(p proc.Process) (caught, awaited, ignored sig.Set) {
	f.fault("Handled")
	return f.processes.Handled(p)
}

func (f faultyProcesses) Program(pid int, withArguments bool) (string, []string) {
	f.fault("Program")
	return f.processes.Program(pid, withArguments)
}
