package proc

import (
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Process is a process, by its id and the time of its start.
type Process = procfs.Process

// proc is /proc of our own mount namespace.
const proc procfs.Root = ""

// Descendants lists our children and theirs, the living and the dead that are not reaped
// yet, or the process Beside and its descendants but us. If /proc cannot be read, PID -1 stands for every
// process but ourselves; see kill(2). Only PID 1 has it: elsewhere some of the processes are not ours.
func (ps *Processes) Descendants() []Process {
	if ps.Beside != 0 {
		family, _ := proc.Below(ps.Beside)
		return slices.DeleteFunc(family, func(p Process) bool { return p.PID == unix.Getpid() })
	}
	family, _ := proc.Descendants()
	if family == nil && unix.Getpid() == 1 {
		return []Process{{PID: -1}}
	}
	return family
}

// KillDescendant sends s to one of Descendants, and never to another process that has
// been given its number since: the pidfd is opened first, and the process with the number
// must then have started at the same time, unless that is not known: 0. Kernels before 5.3 have no
// pidfds, and sandboxes deny them; kill(2) is used there. See pidfd_send_signal(2).
func (ps *Processes) KillDescendant(pid int, start uint64, s sig.Signal) error {
	fd, err := unix.PidfdOpen(pid, 0)
	switch err {
	case nil:
		defer unix.Close(fd)
	case unix.ESRCH:
		return err
	default:
		return ps.Kill(pid, s)
	}
	if now, _ := proc.Process(pid); now.Start != start && start != 0 {
		return unix.ESRCH
	}
	err = unix.PidfdSendSignal(fd, unix.Signal(s), nil, 0)
	if err == unix.EPERM || err == unix.ENOSYS {
		return ps.Kill(pid, s)
	}
	return err
}

// Signals returns what a process does with signals. If /proc cannot tell, it catches all, and none if it
// has ended.
func (*Processes) Signals(pid int) procfs.Signals {
	s, err := proc.Signals(pid)
	if err != nil && (!procfs.Gone(err) || proc.CheckNamespace() != nil) {
		return procfs.Signals{Caught: ^sig.Set(0)}
	}
	return s
}

// Handled returns the signals that a process has handlers for or waits for, those of them that it waits for
// without a handler, and those that it ignores. One of several threads may wait for what all of them block: see sigwait(3).
func (ps *Processes) Handled(p Process) (handled, awaited, ignored sig.Set) {
	s := ps.Signals(p.PID)
	switch {
	case p.Threads > 1:
		awaited = s.Blocked
	case p.State == 'S' && !s.Caught.Has(sig.TERM):
		awaited = proc.Awaited(p.PID, s.Blocked)
	}
	awaited = awaited.Without(s.Caught | s.Ignored)
	return s.Caught | awaited, awaited, s.Ignored
}

// Tracer returns what takes the present traces of processes.
func (*Processes) Tracer() func(pid int) sig.Trace {
	listening := sync.OnceValue(proc.Listening)
	return func(pid int) sig.Trace { return proc.Trace(pid, listening()) }
}

// Ticks returns the time in the unit of Process.Start, USER_HZ: a hundredth of a second.
func (*Processes) Ticks() uint64 {
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return uint64(now.Nano() / 1e7)
}

// Program returns the path of the program that the process runs, and on request its command line. What
// /proc cannot tell is empty.
func (*Processes) Program(pid int, withArguments bool) (exe string, argv []string) {
	if proc.CheckNamespace() != nil {
		return "", nil
	}
	exe, _ = proc.Executable(pid)
	if withArguments {
		argv, _ = proc.Arguments(pid)
	}
	return exe, argv
}
