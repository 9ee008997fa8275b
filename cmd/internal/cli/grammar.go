package cli

import (
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim"
)

// Flags are the flags of lameduck and of its subcommands, as kong reads them. The name of a
// flag is that of its field (--grace-period), and the name of its variable, too
// (LAMEDUCK_GRACE_PERIOD). The tags are kong's own, where type is a name in values.go, and
//
//	of        the commands that have the flag, if not those of the group; see commands
//	everyday  the flag is in --help; --help-all has all flags
//	needs     what the flag has no effect without: see met in config.go
//
// The help is in help.txt, since kong would take as long to read long tags as for all else.
type Flags struct {
	Hold      `group:"Hold:"`
	Traffic   `group:"Traffic:"`
	Signals   `group:"Signals:"`
	Stop      `group:"Stop:"`
	Exit      `group:"Exit:"`
	Report    `group:"Report:"`
	Neighbors `group:"Neighbors:"`
	Process   `group:"Process:"`
	View      `group:"View:"`
	Questions `group:"Questions:"`
}

// commands has the commands that have the flags of a group: run is lameduck itself.
var commands = map[string]string{
	"Hold:":      "run hold",
	"Traffic:":   "run hold watch",
	"Signals:":   "run",
	"Stop:":      "run",
	"Exit:":      "run",
	"Report:":    "run hold",
	"Neighbors:": "run",
	"Process:":   "run",
	"View:":      "watch",
	"Questions:": "run",
}

// Hold has the flags of the hold, apart from Traffic.
type Hold struct {
	Delay       time.Duration  `short:"d" type:"duration" placeholder:"DUR" everyday:""`
	Until       shim.Condition `short:"u" type:"condition" placeholder:"COND" everyday:""`
	GracePeriod time.Duration  `type:"grace" placeholder:"DUR" everyday:"" needs:"sequence"`
	MaxDelay    time.Duration  `type:"length" placeholder:"DUR" needs:"hold"`
	WaitGone    []string       `type:"paths" placeholder:"PATH"`
	OnStop      []string       `type:"command" placeholder:"COMMAND"`
}

// Traffic has the flags about which traffic holds, and for how long.
type Traffic struct {
	QuietFor     time.Duration  `type:"length" placeholder:"DUR" needs:"until"`
	MaxSilence   time.Duration  `type:"length" placeholder:"DUR" needs:"until"`
	CountPort    []uint16       `type:"ports" placeholder:"PORT,..." needs:"hold"`
	IgnorePort   []uint16       `type:"ports" placeholder:"PORT,..." needs:"hold"`
	IgnorePeer   []netip.Prefix `type:"peers" placeholder:"CIDR,..." needs:"hold"`
	IgnoreProbes shim.ProbeRule `type:"probes" negatable:"" needs:"until"`
}

// Signals has the flags about signals before and at a stop.
type Signals struct {
	Rewrite    []shim.Rewrite `short:"r" type:"rewrites" placeholder:"FROM:TO,..." everyday:""`
	StopSignal []shim.Signal  `type:"signals" placeholder:"SIG,..." everyday:""`
	Preset     string         `short:"p" type:"preset" placeholder:"NAME" everyday:""`
	Group      bool           `short:"g" type:"bool"`
}

// Stop has the flags about what happens after the hold.
type Stop struct {
	StopSchedule shim.Schedule `type:"schedule" placeholder:"SCHEDULE"`
	KillAfter    time.Duration `type:"length" placeholder:"DUR"`
	Linger       time.Duration `type:"duration" placeholder:"DUR"`
}

// Exit has the flag about exit codes.
type Exit struct {
	ExitCode []shim.ExitMap `short:"e" type:"exits" placeholder:"FROM[:TO]" everyday:""`
}

// Report has the flags about what is written, and where.
type Report struct {
	LogLevel       shim.Level `type:"level" placeholder:"LEVEL" everyday:""`
	LogFormat      string     `type:"format" placeholder:"FORMAT"`
	TerminationLog string     `type:"log" placeholder:"PATH"`
}

// Neighbors has the flags for health checks and other containers of the pod.
type Neighbors struct {
	Health       *shim.HealthSpec `type:"health" placeholder:"LISTEN[=TARGET]"`
	HealthDuring shim.HealthMode  `type:"mode" placeholder:"MODE" needs:"health"`
	AliveFile    string           `type:"path" placeholder:"PATH"`
}

// Process has the flags about lameduck as a process.
type Process struct {
	Subreaper         shim.Choice `short:"s" type:"choice"`
	ParentDeathSignal shim.Signal `type:"signal" placeholder:"SIG"`
}

// View has the flag for the form of the live view.
type View struct {
	JSON bool `type:"bool"`
}

// Questions has the flags that only ask. They have no variables.
type Questions struct {
	Explain bool `of:"run hold" everyday:""`
	Version bool `everyday:""`
	Help    bool `of:"run hold watch" short:"h" everyday:""`
	HelpAll bool `of:"run hold watch" everyday:""`
}
