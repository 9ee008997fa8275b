package procfs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Process is what proc_pid_stat(5) says of a process.
type Process struct {
	Name        string // of the first thread, as in /proc/PID/comm: at most 15 bytes
	PID, Parent int
	Group       int // the process group
	State       byte
	Threads     int
	Start       uint64 // in clock ticks since the system was started
}

// Dead reports whether the process, or its first thread, has ended.
func (p Process) Dead() bool { return p.State == 'Z' || p.State == 'X' || p.State == 'x' }

// Stopped reports whether the process was stopped by a signal, and handles no other until continued.
func (p Process) Stopped() bool { return p.State == 'T' }

// Process reads fields 2, 3, 4, 5, 20 and 22 of proc_pid_stat(5). Field 2, the name, may hold
// any bytes, and ends at the last parenthesis.
func (r Root) Process(pid int) (Process, error) {
	text, err := r.text(pid, "stat")
	end := strings.LastIndexByte(text, ')')
	_, name, _ := strings.Cut(text[:max(end, 0)], "(")
	fields := strings.Fields(text[end+1:]) // from field 3 on
	if len(fields) < 20 {
		return Process{}, cmp.Or(err, errors.New("truncated stat"))
	}
	parent, _ := strconv.Atoi(fields[1])
	group, _ := strconv.Atoi(fields[2])
	threads, _ := strconv.Atoi(fields[17])
	start, _ := strconv.ParseUint(fields[19], 10, 64)
	return Process{name, pid, parent, group, fields[0][0], threads, start}, nil
}

// Processes lists the processes of our PID namespace, ourselves included, in ascending
// order. The list is nil if /proc cannot be read, and comes with an error if /proc hides
// processes.
func (r Root) Processes() (pids []int, err error) {
	if err := r.CheckNamespace(); err != nil {
		return nil, err
	}
	err = numbers(r.String(), func(_, pid int) error {
		pids = append(pids, pid)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(pids)
	mounts, err := r.Mounts()
	if err == nil && hidesProcesses(mounts, r.String()) {
		err = fmt.Errorf("%q hides processes: it is mounted with hidepid", r.String())
	}
	return pids, err
}

// Descendants lists our children and theirs, as Below does.
func (r Root) Descendants() ([]Process, error) {
	family, err := r.Below(os.Getpid())
	return family[min(1, len(family)):], err
}

// Below lists a process and its descendants, parents before their children, the dead included that
// are not reaped yet. The list is nil if /proc cannot be read, and comes with an error if processes are
// hidden or cannot be read.
func (r Root) Below(pid int) ([]Process, error) {
	all, err := r.readAll()
	if all == nil {
		return nil, err
	}
	family := []Process{}
	children := map[int][]Process{}
	for _, p := range all {
		if p.PID == pid {
			family = append(family, p)
		} else {
			children[p.Parent] = append(children[p.Parent], p)
		}
	}
	for i := 0; i < len(family); i++ {
		family = append(family, children[family[i].PID]...)
	}
	return family, err
}

// First returns the process that runs the container in which we were started from outside: PID 1, or, where
// several containers share a PID namespace, the oldest in our control groups. It is 0 if there is none.
func (r Root) First() (pid int) {
	if r.CheckNamespace() != nil || r.SharesCgroups(1) {
		return 1
	}
	all, _ := r.readAll()
	oldest := uint64(math.MaxUint64)
	for _, p := range all {
		if p.PID != os.Getpid() && p.Start < oldest && r.SharesCgroups(p.PID) {
			pid, oldest = p.PID, p.Start
		}
	}
	return pid
}

// readAll reads the processes of Processes that have not ended meanwhile.
func (r Root) readAll() (all []Process, err error) {
	pids, err := r.Processes()
	for _, pid := range pids {
		p, failed := r.Process(pid)
		switch {
		case failed == nil:
			all = append(all, p)
		case !Gone(failed):
			err = cmp.Or(err, fmt.Errorf("cannot read the parent of process %d: %w", pid, failed))
		}
	}
	r.reparent(all)
	return all, err
}

// reparent reads processes again whose parents have ended meanwhile: the kernel gave them another parent.
// A child may have the lower PID, and be read first, since PIDs begin anew.
func (r Root) reparent(all []Process) {
	listed := map[int]bool{0: true} // PID 0 is a parent outside our PID namespace
	for _, p := range all {
		listed[p.PID] = true
	}
	for i, p := range all {
		if listed[p.Parent] {
			continue
		}
		if again, err := r.Process(p.PID); err == nil {
			all[i] = again
		}
	}
}

// Executable returns the path of the program that a process runs; " (deleted)" follows a
// path that no longer leads to the program.
func (r Root) Executable(pid int) (string, error) { return os.Readlink(r.path(pid, "exe")) }

// maxArguments is how many bytes of a command line are read. An argument of execve(2) has at
// most half as many, but afterwards a process may declare any part of its memory its command
// line, without using the memory: see PR_SET_MM in prctl(2).
const maxArguments = 256 << 10

// Arguments returns the command line of a process: as passed to execve(2), or as the
// process has overwritten it since, and at most its first maxArguments bytes. It is empty for a
// process that has ended.
func (r Root) Arguments(pid int) ([]string, error) { return r.list(pid, "cmdline", maxArguments) }

// Environment returns the environment that was passed to execve(2).
func (r Root) Environment(pid int) ([]string, error) { return r.list(pid, "environ", math.MaxInt64) }

// Signals is what a process does with signals, as in proc_pid_status(5). Blocked is of the first thread.
type Signals struct{ Blocked, Ignored, Caught sig.Set }

// Signals returns what a process does with signals.
func (r Root) Signals(pid int) (s Signals, err error) {
	status, err := r.text(pid, "status")
	if err != nil {
		return s, err
	}
	for set, name := range map[*sig.Set]string{&s.Blocked: "SigBlk:", &s.Ignored: "SigIgn:", &s.Caught: "SigCgt:"} {
		mask, err := strconv.ParseUint(field(status, name), 16, 64) // bit 0 is signal 1
		if err != nil {
			return s, err
		}
		*set = sig.Set(mask)
	}
	return s, nil
}

// PtraceScope returns kernel.yama.ptrace_scope, 0 without Yama; see ptrace(2).
func (r Root) PtraceScope() int {
	text, _ := r.text(system, "sys/kernel/yama/ptrace_scope")
	level, _ := strconv.Atoi(strings.TrimSpace(text))
	return level
}
