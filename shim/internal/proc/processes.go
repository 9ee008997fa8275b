package proc

import (
	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
)

// Processes starts, inspects, signals and reaps the processes of one run of lameduck.
type Processes struct {
	Threads      int    // needed besides the threads of every run
	ResetSignals bool   // the command starts with default signal dispositions
	Parent       int    // PID of the process that started lameduck
	Beside       int    // a process whose descendants are not ours; 0: none
	Dir          string // where lameduck was started; "": our working directory

	command       Command // as started
	noneInherited bool    // no descriptor from 3 up was inherited, for certain
}

// Reserve takes the threads and checks the file descriptors that are needed later.
func (p *Processes) Reserve() error {
	var open unix.Stat_t // its size is the number of open descriptors since Linux 6.2
	p.noneInherited = unix.Stat("/proc/self/fd", &open) == nil && open.Size == 3
	if err := checkDescriptors(); err != nil {
		return err
	}
	ReserveThreads(p.Threads) // needs two descriptors
	return nil
}

// Start starts the command in our working directory, which we leave.
func (p *Processes) Start(c Command) (pid int, err error) {
	c.Dir = leaveDirectory()
	c.Blocked, c.Ignored = sigcatch.Inherited()
	if p.ResetSignals {
		c.Blocked = 0
		c.Ignored = c.Ignored.Without(sig.Standard)
	}
	p.command = c
	return p.command.Start()
}

// StartBeside starts a program beside the command, in Dir.
func (p *Processes) StartBeside(argv, env []string) (pid int, err error) {
	c := Command{Argv: argv, Env: env, Background: true, Dir: p.accessibleDir()}
	c.Blocked, c.Ignored = p.command.Blocked, p.command.Ignored
	return c.Start()
}

// Find returns the error with which StartBeside would fail now to find the program, or to
// have permission for the program.
func (p *Processes) Find(argv, env []string) error { return find(p.accessibleDir(), argv, env) }

// accessibleDir returns Dir ("": ours), or the root directory if Dir is no longer accessible: we may have
// been started there with more privileges.
func (p *Processes) accessibleDir() string {
	if p.Dir != "" && unix.Access(p.Dir, unix.X_OK) != nil {
		return "/"
	}
	return p.Dir
}

// Released reports, once for each signal, whether the kernel sent s because we gave up the
// terminal for the command.
func (p *Processes) Released(s sig.Signal) bool {
	was := p.command.released.Has(s)
	p.command.released = p.command.released.Without(sig.SetOf(s))
	return was
}
