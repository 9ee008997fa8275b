package plan

import (
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Config is the configuration of a run, a hook and a live view: plain values, one for each
// flag. Zero values are the flags' defaults, except Level (zero is Error, the default is
// Warn). Command and Env have no defaults.
//
// The tags are the grammar of the flags, for package cli, which reads them with kong. The
// name of a flag is that of its field (--grace-period), and the name of its variable, too
// (LAMEDUCK_GRACE_PERIOD). The tags are kong's own, where type is a name in cli/values.go,
// and
//
//	needs  what the flag has no effect without: see unmet in cli/config.go
//
// The help is in cli/help.txt, with the name of the value, since kong would take as long to read long
// tags as for all else.
type Config struct {
	Command []string `kong:"-"` // the program and its arguments
	Env     []string `kong:"-"` // its environment

	// The floor of the hold.
	Delay time.Duration `group:"Hold:" short:"d" type:"duration"`
	// Delay is the user's, even if Delay is 0.
	DelayGiven bool `kong:"-"`
	// The condition that ends the hold after the floor.
	Until stop.Reason `group:"Hold:" short:"u" type:"condition"`
	// 0: assumed from Env.
	GracePeriod time.Duration `group:"Hold:" of:"run hold watch" type:"grace"`
	// The ceiling; 0: from the grace period.
	MaxDelay time.Duration `group:"Hold:" type:"length" needs:"hold"`
	// Paths: hold while any of them exists.
	WaitGone []string `group:"Hold:" type:"path"`
	// Hold until it answers 200 or refuses the connection; nil: no URL.
	WaitURL *check.Request `group:"Hold:" name:"wait-url" type:"url"`
	// Close the connections that clients keep while they are idle, once nothing new comes.
	CloseIdle bool `group:"Hold:" type:"bool" needs:"quiet"`
	// The local ports of HTTP/2 without TLS: GOAWAY is sent once nothing new comes; AutoGoaway: lameduck
	// asks the servers what they speak.
	Goaway []uint16 `group:"Hold:" type:"goaway" needs:"quiet"`
	// What happens when the stop begins.
	OnStop OnStop `group:"Hold:" type:"onstop" needs:"hold"`

	// How long the silence must last; 0: the default.
	QuietFor time.Duration `group:"Traffic:" type:"length" needs:"until"`
	// How long a request in flight may be silent and still hold; 0: the default.
	MaxSilence time.Duration `group:"Traffic:" type:"length" needs:"until"`
	// The local ports that count; empty: the ports of the container's listeners.
	CountPorts []uint16 `group:"Traffic:" name:"count-port" type:"ports" needs:"hold"`
	// Local ports that do not count.
	IgnorePorts []uint16 `group:"Traffic:" name:"ignore-port" type:"ports" needs:"hold"`
	// Peers that do not count.
	IgnorePeers []netip.Prefix `group:"Traffic:" name:"ignore-peer" type:"peers" needs:"hold"`
	// When traffic that looks like health probes is left out.
	Probes traffic.ProbeRule `group:"Traffic:" name:"ignore-probes" type:"probes" negatable:"" needs:"until"`

	Rewrites []Rewrite `group:"Signals:" name:"rewrite" short:"r" type:"rewrites"`
	// Besides TERM and the signal that TERM is rewritten to.
	StopSignals []sig.Signal `group:"Signals:" name:"stop-signal" type:"signals"`
	// A preset's name, or preset.Auto; "": none.
	Preset string `group:"Signals:" of:"run hold" short:"p" type:"preset"`
	// Signal the command's process group.
	Group bool `group:"Signals:" short:"g" type:"bool"`

	// The signals after the hold; nil: the stop signal.
	Schedule stop.Schedule `group:"Stop:" of:"run hold" name:"stop-schedule" type:"schedule"`
	// From the first signal sent to KILL; 0: never.
	KillAfter time.Duration `group:"Stop:" of:"run hold" type:"length"`
	// How long processes may outlive the command, before KILL; 0: as LingerGiven says.
	Linger time.Duration `group:"Stop:" type:"duration"`
	// A Linger of 0 is the user's: lameduck leaves with the command. Without it, processes at work
	// have the rest of the grace period after a stop signal.
	LingerGiven bool `kong:"-"`

	ExitCodes []preset.ExitCode `group:"Exit:" name:"exit-code" short:"e" type:"exits"`

	Level Level `group:"Report:" name:"log-level" type:"level"`
	JSON  bool  `kong:"-"` // log in JSON, one object per line
	// Path of a second place for the report, or NoTerminationLog; "": /dev/termination-log if writable.
	TerminationLog string   `group:"Report:" of:"run hold watch" type:"log"`
	Warnings       []string `kong:"-"` // of the caller, logged at the start

	// Where health checks are answered; nil: nowhere.
	Health *check.Spec `group:"Neighbors:" type:"health"`
	// How health checks are answered from the first stop signal on.
	HealthDuring check.Mode `group:"Neighbors:" type:"mode" needs:"health"`
	// Path of a file that exists while the command runs; "": no file.
	AliveFile string `group:"Neighbors:" type:"path"`

	// Reap orphans when not PID 1.
	Subreaper Choice `group:"Process:" short:"s" type:"choice"`
	// The signal for lameduck when the parent ends; 0: no signal.
	ParentDeathSignal sig.Signal `group:"Process:" type:"signal"`

	// For the drop-in names. No flag of lameduck's own sets these fields.
	Session        bool `kong:"-"` // the command leads a session of its own, which is signaled as a group
	SameGroup      bool `kong:"-"` // the command stays in lameduck's own process group
	ResetSignals   bool `kong:"-"` // the command starts with no signal blocked and 1 to 31 at their defaults
	StopSelfOnTSTP bool `kong:"-"` // TSTP, TTIN and TTOU stop lameduck as well
	TermGroup      bool `kong:"-"` // the command's group gets TERM when the command has exited
	WarnReaped     bool `kong:"-"` // reaped orphans are logged at Warn instead of Debug
	PassAll        bool `kong:"-"` // all signals that begin no stop are passed on to the command, also those that end it
	TERMDropped    bool `kong:"-"` // the other program's flag drops TERM: no warning without a hold
}

// Holds reports whether a stop begins with a hold.
func (c *Config) Holds() bool { return c.gate(0).Holds() }
