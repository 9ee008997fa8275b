package proc

import (
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Process is a process, by its id and the time of its start.
type Process = procfs.Process

// proc is /proc of our own mount namespace.
const proc procfs.Root = ""

// Descendants lists our children and theirs, the living and the dead that are not reaped
// yet; ok is false if /proc cannot be read.
func (*Processes) Descendants() (family []Process, ok bool) {
	if !hasChildren() { // reading all of /proc takes milliseconds
		return []Process{}, true
	}
	family, _ = proc.Descendants()
	return family, family != nil
}

// KillDescendant sends s to p, one of Descendants, and never to another process that has
// been given its number since: the pidfd is opened first, and the process with the number
// must then have the start time of p. Kernels before 5.3 have no pidfds, and sandboxes deny
// them; kill(2) is used there. See pidfd_send_signal(2).
func (ps *Processes) KillDescendant(p Process, s sig.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	switch err {
	case nil:
		defer unix.Close(fd)
	case unix.ESRCH:
		return err
	default:
		return ps.Kill(p.PID, s)
	}
	if now, _ := proc.Process(p.PID); now.Start != p.Start {
		return unix.ESRCH
	}
	err = unix.PidfdSendSignal(fd, unix.Signal(s), nil, 0)
	if err == unix.EPERM || err == unix.ENOSYS {
		return ps.Kill(p.PID, s)
	}
	return err
}

// Caught returns the set of signals that the process catches; ok is false if /proc cannot
// tell.
func (*Processes) Caught(pid int) (set sig.Set, ok bool) {
	if proc.CheckNamespace() != nil {
		return 0, false
	}
	mask, err := proc.Caught(pid)
	return sig.Set(mask), err == nil
}

// shells are programs that run others and seldom forward signals.
var shells = []string{"sh", "ash", "bash", "dash", "ksh", "mksh", "zsh", "busybox"}

// IsShell reports whether the process is a shell with a child, as far as /proc can tell.
func (p *Processes) IsShell(pid int) bool {
	exe, _ := proc.Executable(pid)
	if !slices.Contains(shells, path.Base(exe)) {
		return false
	}
	family, _ := p.Descendants()
	return slices.ContainsFunc(family, func(member Process) bool { return member.Parent == pid })
}

// Program returns the path of the program that the process runs, and its command line,
// without the empty words that are left where a process overwrites its command line. What
// /proc cannot tell is empty.
func (*Processes) Program(pid int) (exe string, argv []string) {
	if proc.CheckNamespace() != nil {
		return "", nil
	}
	exe, _ = proc.Executable(pid)
	argv, _ = proc.Arguments(pid)
	for len(argv) > 1 && argv[len(argv)-1] == "" {
		argv = argv[:len(argv)-1]
	}
	return exe, argv
}
