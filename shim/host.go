package shim

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/alive"
	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/stderr"
	"github.com/lameduck-init/lameduck/shim/internal/termlog"
)

// host is everything but the time that the loop asks of the operating system, in five
// groups, each of which a test may replace. Only the loop's goroutine calls the methods.
// The time needs no group: testing/synctest makes time virtual.
type host struct {
	signals   signalHost
	processes processHost
	traffic   trafficHost
	neighbors neighborHost
	output    outputHost
}

// signalHost receives signals.
type signalHost interface {
	// next waits for a signal until a deadline, forever if the deadline is zero. At the
	// deadline, or when a sample of the traffic is ready, next returns 0.
	next(deadline time.Time) sig.Signal
	// selfInflicted reports whether lameduck itself caused the signal s.
	selfInflicted(s sig.Signal) bool
	// fromOutside reports whether a process outside of the PID namespace sent the latest s.
	fromOutside(s sig.Signal) bool
}

// processHost starts, inspects, signals and reaps processes.
type processHost interface {
	reserve() error         // takes the threads and checks the file descriptors that are needed later
	becomeSubreaper() error // see PR_SET_CHILD_SUBREAPER
	setParentDeathSignal(s sig.Signal) error

	start(c proc.Command) (pid int, err error)
	releaseInherited()                               // leaves the directory and the descriptors that only the command needs
	findOnStop(dir string, argv, env []string) error // the error with which runOnStop would fail now
	runOnStop(dir string, argv, env []string) (pid int, err error)
	reap() (pid int, status proc.Status)

	kill(pid int, s sig.Signal) error                  // as kill(2)
	killDescendant(p proc.Process, s sig.Signal) error // p is one of descendants
	descendants() (list []proc.Process, ok bool)
	caught(pid int) (set sig.Set, ok bool)
	program(pid int) (exe string, argv []string)
	isShell(pid int) bool // a shell with a child

	stopSelf(s sig.Signal)
	giveTerminal(group int) bool // false: the terminal is not lameduck's to give
	takeTerminal(group int)
}

// trafficHost samples the traffic.
type trafficHost interface {
	startSampling(c observe.Config)
	resume(searching bool) // a snapshot was handled; searching for a lull, samples are more frequent
	slowDown()             // the hold is over: samples only serve the report
	snapshots() <-chan observe.Snapshot
	listening(pids []int) (pid int) // the first process with a TCP listener; 0: no such process
}

// neighborHost serves other containers: health checks and the alive file.
type neighborHost interface {
	hasDirectory(path string) bool // true if the file system does not tell
	listenHealth(spec health.Spec) error
	stopHealth(during health.Mode)
	health() *health.Listener // nil: none
	createAliveFile(path string) error
	removeAliveFile()
}

// outputHost writes to standard error and the termination log. While the command runs no
// method waits for a reader or a volume.
type outputHost interface {
	writeLine(lines ...string)          // together
	writeTermlog(lines ...string) error // replaces the previous lines; a first call without lines checks the file, and may wait
	flush()                             // waits a moment until all is written
}

// newHost returns the operating system as a host.
func newHost(cfg *Config) host {
	out := newStderr(2, cfg.JSON)
	processes := &osProcesses{threads: cfg.maxThreads(), resetSignals: cfg.ResetSignals, parent: os.Getppid()}
	return host{
		signals:   &osSignals{out: out, command: &processes.command},
		processes: processes,
		traffic:   &osTraffic{channel: make(chan observe.Snapshot, 1)},
		neighbors: &osNeighbors{},
		output:    &osOutput{out: out, termlog: termlog.New(cfg.TerminationLog)},
	}
}

type osSignals struct {
	out     *stderr.Writer
	command *proc.Command
}

func (h *osSignals) next(deadline time.Time) sig.Signal { return sigcatch.Next(deadline) }

func (h *osSignals) fromOutside(s sig.Signal) bool { return sigcatch.FromOutside(s) }

func (h *osSignals) selfInflicted(s sig.Signal) bool {
	return s == sig.CHLD || s == sig.PIPE && h.out.CausedSIGPIPE() || h.command.Released(s)
}

type osProcesses struct {
	threads      int          // needed besides the threads of every run
	resetSignals bool         // the command starts with default signal dispositions
	parent       int          // PID of the process that started lameduck
	command      proc.Command // as started
}

func (h *osProcesses) reserve() error {
	if err := proc.CheckDescriptors(); err != nil {
		return err
	}
	proc.ReserveThreads(h.threads) // needs two descriptors
	return nil
}

func (h *osProcesses) becomeSubreaper() error { return proc.BecomeSubreaper() }

func (h *osProcesses) setParentDeathSignal(s sig.Signal) error {
	return proc.SetParentDeathSignal(s, h.parent)
}

func (h *osProcesses) start(c proc.Command) (int, error) {
	c.Dir = proc.LeaveDirectory()
	c.Blocked, c.Ignored = sigcatch.Inherited()
	if h.resetSignals {
		c.Blocked = 0
		c.Ignored = c.Ignored.Without(sig.Standard)
	}
	h.command = c
	return h.command.Start()
}

func (h *osProcesses) releaseInherited() { proc.ReleaseInherited() }

func (h *osProcesses) findOnStop(dir string, argv, env []string) error {
	return proc.Find(accessible(dir), argv, env)
}

// accessible returns dir, or the root directory if dir is no longer accessible: lameduck may
// have been started in dir with more privileges.
func accessible(dir string) string {
	if unix.Access(dir, unix.X_OK) != nil {
		return "/"
	}
	return dir
}

func (h *osProcesses) runOnStop(dir string, argv, env []string) (int, error) {
	dir = accessible(dir)
	c := proc.Command{Argv: argv, Env: env, Background: true, Dir: dir, Blocked: h.command.Blocked, Ignored: h.command.Ignored}
	return c.Start()
}

func (h *osProcesses) reap() (int, proc.Status)            { return proc.Reap() }
func (h *osProcesses) kill(pid int, s sig.Signal) error    { return proc.Kill(pid, s) }
func (h *osProcesses) descendants() ([]proc.Process, bool) { return proc.Descendants() }
func (h *osProcesses) caught(pid int) (sig.Set, bool)      { return proc.Caught(pid) }
func (h *osProcesses) program(pid int) (string, []string)  { return proc.Program(pid) }
func (h *osProcesses) isShell(pid int) bool                { return proc.IsShell(pid) }
func (h *osProcesses) stopSelf(s sig.Signal)               { proc.StopSelf(s) }
func (h *osProcesses) giveTerminal(group int) bool         { return proc.GiveTerminal(group) }
func (h *osProcesses) takeTerminal(group int)              { proc.RetakeTerminal(group) }

func (h *osProcesses) killDescendant(p proc.Process, s sig.Signal) error {
	return proc.KillDescendant(p, s)
}

type osTraffic struct {
	sampler *observe.Sampler
	channel chan observe.Snapshot
}

func (h *osTraffic) startSampling(c observe.Config)     { h.sampler = observe.Start(c, h.channel) }
func (h *osTraffic) resume(searching bool)              { h.sampler.Continue(searching) }
func (h *osTraffic) slowDown()                          { h.sampler.SlowDown() }
func (h *osTraffic) snapshots() <-chan observe.Snapshot { return h.channel }

func (h *osTraffic) listening(pids []int) int { return observe.Listening(pids) }

type osNeighbors struct {
	listener  *health.Listener
	aliveFile *alive.File
}

func (h *osNeighbors) listenHealth(spec health.Spec) error {
	listener, err := health.Open(spec)
	if err != nil {
		return err
	}
	h.listener = listener
	go listener.Serve()
	return nil
}

func (h *osNeighbors) hasDirectory(path string) bool {
	info, err := os.Stat(path)
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
	return !missing && (err != nil || info.IsDir())
}

func (h *osNeighbors) stopHealth(during health.Mode) { h.listener.SetMode(during) }
func (h *osNeighbors) health() *health.Listener      { return h.listener }

func (h *osNeighbors) createAliveFile(path string) (err error) {
	if path != "" {
		h.aliveFile, err = alive.Create(path)
	}
	return err
}

func (h *osNeighbors) removeAliveFile() {
	if h.aliveFile != nil {
		h.aliveFile.Remove()
	}
}

type osOutput struct {
	out     *stderr.Writer
	termlog *termlog.Writer
}

func (h *osOutput) writeLine(lines ...string)          { h.out.Line(lines...) }
func (h *osOutput) writeTermlog(lines ...string) error { return h.termlog.Write(lines...) }

func (h *osOutput) flush() {
	h.termlog.Flush()
	h.out.Flush()
}
