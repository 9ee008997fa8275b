package shim

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/termlog"
)

// host is everything but the time that the loop asks of the operating system. Tests have
// another host. Only the loop's goroutine uses a host. testing/synctest makes time virtual.
type host struct {
	processes processes

	// next waits for a signal until a deadline, forever if the deadline is zero. At the
	// deadline, or when a sample of the traffic is ready, next returns 0.
	next          func(deadline time.Time) sig.Signal
	selfInflicted func(s sig.Signal) bool // lameduck itself caused the signal s
	fromOutside   func(s sig.Signal) bool // a process outside of the PID namespace sent the latest s

	startSampling func(observe.Config) sampler
	snapshots     chan observe.Snapshot // of the sampler

	serveHealth   func(health.Spec) (*health.Listener, error)
	setHealthMode func(*health.Listener, health.Mode)
	hasDirectory  func(path string) bool // true if the file system does not tell

	// While the command runs, writing waits for no reader and no volume.
	writeLine    func(lines ...string)
	writeTermlog func(lines ...string) error // replaces the previous lines; a first call checks the file, and may wait
	flush        func()                      // waits a moment until all is written
}

// processes is a *proc.Processes.
type processes interface {
	Reserve() error
	BecomeSubreaper() error
	SetParentDeathSignal(s sig.Signal) error

	Start(c proc.Command) (pid int, err error)
	ReleaseInherited()
	Find(dir string, argv, env []string) error
	StartBeside(dir string, argv, env []string) (pid int, err error)
	Reap() (pid int, status proc.Status)

	Kill(pid int, s sig.Signal) error
	KillDescendant(p proc.Process, s sig.Signal) error
	Descendants() (list []proc.Process, ok bool)
	Caught(pid int) (set sig.Set, ok bool)
	Program(pid int) (exe string, argv []string)
	IsShell(pid int) bool

	StopSelf(s sig.Signal)
	GiveTerminal(group int) bool
	RetakeTerminal(group int)
}

// sampler is an *observe.Sampler.
type sampler interface {
	Continue(searching bool) // a snapshot was handled; searching for a lull, samples are more frequent
	SlowDown()               // the hold is over: samples only serve the report
}

// newHost returns the operating system as a host.
func newHost(cfg *Config) host {
	out := newStderr(2, cfg.JSON)
	log := termlog.New(cfg.TerminationLog)
	processes := &proc.Processes{Threads: cfg.maxThreads(), ResetSignals: cfg.ResetSignals, Parent: os.Getppid()}
	snapshots := make(chan observe.Snapshot, 1)
	return host{
		processes: processes,
		next:      sigcatch.Next,
		selfInflicted: func(s sig.Signal) bool {
			return s == sig.PIPE && out.CausedSIGPIPE() || processes.Released(s)
		},
		fromOutside:   sigcatch.FromOutside,
		startSampling: func(c observe.Config) sampler { return observe.Start(c, snapshots) },
		snapshots:     snapshots,
		serveHealth:   serveHealth,
		setHealthMode: (*health.Listener).SetMode,
		hasDirectory:  hasDirectory,
		writeLine:     out.Line,
		writeTermlog:  log.Write,
		flush: func() {
			log.Flush()
			out.Flush()
		},
	}
}

// serveHealth starts the health listener.
func serveHealth(spec health.Spec) (*health.Listener, error) {
	listener, err := health.Open(spec)
	if err == nil {
		go listener.Serve()
	}
	return listener, err
}

func hasDirectory(path string) bool {
	info, err := os.Stat(path)
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
	return !missing && (err != nil || info.IsDir())
}
