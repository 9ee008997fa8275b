package shim

import (
	"net/netip"
	"time"
)

// Config is the configuration of [Run], [Hold] and [Watch]: plain values, one for each
// flag. Zero values are the flags' defaults, except Level (zero is Error, the default is
// Warn). Command and Env have no defaults.
type Config struct {
	Command []string // the program and its arguments
	Env     []string // its environment

	Rewrites    []Rewrite
	StopSignals []Signal // besides TERM and the signal that TERM is rewritten to
	Preset      string   // a preset's name, or AutoPreset; "": none

	Delay       time.Duration // the floor of the hold
	DelayGiven  bool          // Delay is the user's, even if Delay is 0
	Until       Condition     // the condition that ends the hold after the floor
	QuietFor    time.Duration // how long the silence must last; 0: the default
	MaxSilence  time.Duration // how long a request in flight may be silent and still hold; 0: the default
	MaxDelay    time.Duration // the ceiling; 0: from the grace period
	GracePeriod time.Duration // 0: assumed from Env

	CountPorts  []uint16       // the local ports that count; empty: the ports of the container's listeners
	IgnorePorts []uint16       // local ports that do not count
	IgnorePeers []netip.Prefix // peers that do not count
	Probes      ProbeRule      // when traffic that looks like health probes is left out

	WaitGone  []string // paths: hold while any of them exists
	OnStop    []string // the program to run when the stop begins, and its arguments
	AliveFile string   // path of a file that exists while the command runs; "": no file

	Health       *HealthSpec // where health checks are answered; nil: nowhere
	HealthDuring HealthMode  // how health checks are answered from the first stop signal on

	Schedule  Schedule      // the signals after the hold; nil: the stop signal
	KillAfter time.Duration // from the first signal sent to KILL; 0: never
	Linger    time.Duration // how long descendants may outlive the command

	Group bool // signal the command's process group

	Subreaper         Choice // reap orphans when not PID 1
	ParentDeathSignal Signal // the signal for lameduck when the parent ends; 0: no signal

	// For the drop-in names. No flag of lameduck's own sets these fields.
	Session        bool // the command leads a session of its own, which is signaled as a group
	SameGroup      bool // the command stays in lameduck's own process group
	ResetSignals   bool // the command starts with no signal blocked and 1 to 31 at their defaults
	StopSelfOnTSTP bool // TSTP, TTIN and TTOU stop lameduck as well
	TermGroup      bool // the command's group gets TERM when the command has exited
	WarnReaped     bool // reaped orphans are logged at Warn instead of Debug
	TERMDropped    bool // the other program's flag drops TERM: no warning without a hold

	ExitCodes []ExitMap

	TerminationLog string // path of a second place for the report, or NoTerminationLog; "": /dev/termination-log if writable
	JSON           bool   // log in JSON, one object per line
	Level          Level
	Warnings       []string // of the caller, logged at the start
}

// Holds reports whether a stop begins with a hold.
func (c *Config) Holds() bool {
	return c.Delay > 0 || c.Until != Elapsed || len(c.WaitGone) > 0 || len(c.OnStop) > 0
}

// maxThreads returns the number of threads that the configuration needs besides the threads
// of every run: the health listener's thread and the termination log's.
func (c *Config) maxThreads() int {
	n := 0
	if c.Health != nil {
		n++
	}
	mayReport := c.Holds() || c.Schedule != nil || c.KillAfter > 0 || c.Preset != ""
	if c.TerminationLog != NoTerminationLog && mayReport {
		n++
	}
	return n
}

// Validate reports contradictions in the configuration, in terms of the flags. Validate has
// no side effects.
func (c *Config) Validate() error {
	_, err := newPlan(c, false, true)
	return err
}
