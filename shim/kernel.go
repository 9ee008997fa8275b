package shim

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/alive"
	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
)

// kernel is all that the loop asks of the system. Only the loop's goroutine
// calls it. The time is the one thing that does not come through here:
// testing/synctest makes it virtual where a test wants it so.
type kernel struct {
	next func(until time.Time) sig.Signal // waits for a signal; 0: for that time in vain

	// Before the start, when all may fail.
	prepare func() error             // takes what may later be denied
	adopt   func() error             // makes us the reaper of orphans
	follow  func(s sig.Signal) error // has s sent to us when our parent ends
	start   func(c proc.Command) (pid int, err error)
	started func() // what the command need not wait for

	listen func(p *plan, at health.Spec) error // answers health checks, from now on
	show   func(path string) error             // the file that says that the command runs; "": none
	hide   func()                              // takes it away

	// While the command runs.
	run         func(dir string, argv, env []string) (pid int, err error) // what is to run beside the command
	kill        func(pid int, s sig.Signal) error
	killOther   func(p proc.Process, s sig.Signal) error // p is from descendants
	reap        func() (pid int, status proc.Status)
	caught      func(pid int) (set sig.Set, ok bool)
	descendants func() (family []proc.Process, ok bool)
	stopSelf    func(s sig.Signal)
	handOver    func(pgrp int) bool // the terminal, if it is ours to give
	takeBack    func(pgrp int)

	retire func(during health.Mode)       // answers them otherwise
	watch  func(p *plan, start time.Time) // begins to look at the traffic
	ease   func()                         // looks are for the report alone
	looks  <-chan observe.Snapshot        // what was seen; next returns when there is something

	program func(pid int) (exe string, argv []string) // what it runs, as far as that can be seen
	isShell func(pid int) bool                        // whether it is one, with a child
	own     func(s sig.Signal) bool                   // whether s, once, came of what we did ourselves
	line    func(text string)                         // to standard error; never waits
	note    func(text string) error                   // to the termination log, in place of the last one
	flush   func()
}

// system is the real one.
func system(cfg *Config) kernel {
	out, notes := speaker(2, cfg.JSON), &noter{log: newTermlog(cfg.TerminationLog)}
	parent := os.Getppid()
	var command proc.Command
	var sampler *observe.Sampler
	looks := make(chan observe.Snapshot, 1)
	var sign *alive.File
	var checks *health.Listener
	return kernel{
		listen: func(p *plan, at health.Spec) (err error) {
			if checks, err = health.Open(at); err == nil {
				p.health = checks
				go checks.Serve()
			}
			return err
		},
		retire: func(during health.Mode) { checks.SetMode(during) },
		show: func(path string) (err error) {
			if path != "" {
				sign, err = alive.Create(path)
			}
			return err
		},
		hide: func() {
			if sign != nil {
				sign.Remove()
			}
		},
		run: func(dir string, argv, env []string) (int, error) {
			if unix.Access(dir, unix.X_OK) != nil { // lameduck was started in it with more rights
				dir = "/"
			}
			hook := proc.Command{Argv: argv, Env: env, Aside: true, Dir: dir, Blocked: command.Blocked, Ignored: command.Ignored}
			return hook.Start()
		},
		looks: looks,
		watch: func(p *plan, start time.Time) { sampler = observe.Start(p.observe(start), looks) },
		ease:  func() { sampler.SlowDown() },
		next:  sigcatch.Next,
		prepare: func() error {
			if err := proc.CheckDescriptors(); err != nil {
				return err
			}
			proc.Settle(cfg.threads()) // takes two of them
			return nil
		},
		adopt:  proc.Adopt,
		follow: func(s sig.Signal) error { return proc.FollowParent(s, parent) },
		start: func(c proc.Command) (int, error) {
			command = c
			command.Dir = proc.LeaveDirectory()
			command.Blocked, command.Ignored = sigcatch.Inherited()
			if cfg.ResetSignals {
				command.Blocked, command.Ignored = 0, command.Ignored.Without(sig.Standard)
			}
			return command.Start()
		},
		started:     proc.LetGo,
		kill:        proc.Kill,
		killOther:   proc.KillDescendant,
		reap:        proc.Reap,
		caught:      proc.Caught,
		descendants: proc.Descendants,
		stopSelf:    proc.StopSelf,
		handOver:    proc.HandOver,
		takeBack:    proc.TakeBack,
		own: func(s sig.Signal) bool {
			return s == sig.CHLD || s == sig.PIPE && out.CausedSIGPIPE() || command.Released(s)
		},
		program: proc.Program,
		isShell: proc.IsShell,
		line:    out.Line,
		note:    notes.note,
		flush: func() {
			notes.flush()
			out.Flush()
		},
	}
}
