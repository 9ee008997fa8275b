package proc

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
)

// Processes starts, inspects, signals and reaps the processes of one run of lameduck.
type Processes struct {
	ResetSignals bool   // the command starts with default signal dispositions
	Beside       int    // a process whose descendants are not ours; 0: none
	Dir          string // where lameduck was started

	released      sig.Set // signals that the kernel sends us for giving up the terminal
	noneInherited bool    // no descriptor from 3 up was inherited, for certain
}

// Reserve takes the threads, so many besides those of every run, and checks the file descriptors that are
// needed later.
func (p *Processes) Reserve(threads int) error {
	var open unix.Stat_t // its size is the number of open descriptors since Linux 6.2
	p.noneInherited = unix.Stat("/proc/self/fd", &open) == nil && open.Size == 3
	if err := checkDescriptors(); err != nil {
		return err
	}
	ReserveThreads(threads) // needs two descriptors
	return nil
}

// Start runs a command in a process group of its own, the terminal's foreground one if we were
// that (unless Session or SameGroup), with our standard streams, every inherited descriptor, and Env.
// The program is searched along Env's PATH, as by execvp(3). An error of the command's own is a
// *StartError.
//
// The command starts in our working directory, and a background command in Dir, if that is accessible: we
// may have been started there with more privileges. Either way we are in / afterwards.
//
// Go's fork restores the soft limit of open files, which Go has raised; a second stage of
// our own program restores the signal mask and the ignored signals, if necessary
// (secondstage.go).
func (p *Processes) Start(c Command) (pid int, err error) {
	c.blocked, c.ignored = sigcatch.Inherited()
	if p.ResetSignals {
		c.blocked = 0
		c.ignored = c.ignored.Without(sig.Standard)
	}
	if c.Background {
		unix.Chdir(p.Dir)
	}
	defer unix.Chdir("/")
	if c.Session {
		c.releaseTerminal()
		p.released = c.released
	}
	if pid, err = c.startSecondStage(); !errors.Is(err, errNoStage) {
		return pid, err
	}
	err = execvp(c.Argv, c.Env, func(path string, argv []string) (err error) {
		pid, err = c.forkExec(path, argv, c.Env)
		return err
	})
	return pid, err
}

// Find returns the error with which Start would fail to find the program of argv in our working directory and
// along the PATH of env, or to have permission for the program.
func (*Processes) Find(argv, env []string) error {
	mayRun := func(path string, _ []string) error {
		var info unix.Stat_t
		if err := unix.Stat(path, &info); err != nil {
			return err
		}
		if info.Mode&unix.S_IFMT != unix.S_IFREG {
			return unix.EACCES
		}
		return unix.Access(path, unix.X_OK)
	}
	return execvp(argv, env, mayRun)
}

// Released reports, once for each signal, whether the kernel sent s because we gave up the
// terminal for the command.
func (p *Processes) Released(s sig.Signal) bool {
	was := p.released.Has(s)
	p.released = p.released.Without(sig.SetOf(s))
	return was
}
