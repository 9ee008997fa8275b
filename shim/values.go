package shim

import (
	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/letgo"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// The configuration with the types of its values, and what it comes to; see package plan.
type (
	Config    = plan.Config
	FlagError = plan.FlagError
	Plan      = plan.Plan
	Level     = plan.Level
	Signal    = sig.Signal
	Rewrite   = sig.Rewrite
	ExitMap   = preset.ExitCode
	Preset    = preset.Preset
	OnStop    = plan.OnStop
	Request   = check.Request
)

// The values of flags that are words.
const (
	Elapsed = plan.Elapsed // --until
	Settled = stop.Settled
	Quiet   = stop.Quiet
	Drained = stop.Drained

	IgnoreProbes = traffic.IgnoreProbes // --ignore-probes
	CountProbes  = traffic.CountProbes

	HealthPass  = check.Pass // --health-during
	HealthFail  = check.Fail
	HealthClose = check.Close

	Error = plan.Error // --log-level
	Warn  = plan.Warn
	Info  = plan.Info
	Debug = plan.Debug

	Auto = plan.Auto // --subreaper
	Yes  = plan.Yes
	No   = plan.No

	TERM = sig.TERM // signals
	TSTP = sig.TSTP
	TTIN = sig.TTIN
	TTOU = sig.TTOU
	STOP = sig.STOP

	AutoGoaway       = letgo.Auto            // --goaway
	AutoPreset       = preset.Auto           // --preset
	NoTerminationLog = plan.NoTerminationLog // --termination-log
)

// Review returns the plan of a configuration. A review may take place elsewhere than the run,
// as that of a pod spec does: nothing of the machine and of this build counts (directories, ports,
// programs, a terminal, the signals that the build catches). An error is a contradiction that Run
// would find as well.
func Review(cfg Config) (*Plan, error) { return plan.Review(&cfg) }

// What the commands ask other rooms.
var (
	Variable = plan.Variable  // the name of a flag's variable: LAMEDUCK_MAX_DELAY for max-delay
	Flag     = plan.Flag      // a flag with its value, for a message: --delay=5 (LAMEDUCK_DELAY)
	Explain  = report.Explain // a plan in plain words: that of a preStop hook, or that of a run

	PresetNamed = preset.Named // by a name or an alias, in any case
	Presets     = preset.All

	ParseSignal   = sig.Parse          // a name or a number
	ParseRewrite  = sig.ParseRewrite   // FROM:TO, or FROM:0 to drop FROM
	ParseDuration = stop.ParseDuration // a Go duration or a bare number of seconds
	ParseSchedule = stop.ParseSchedule // in the form of start-stop-daemon(8)'s --retry
	ParseHealth   = check.Parse        // LISTEN[=TARGET]
	ParseRequest  = check.ParseRequest // a URL, or a method and a URL
	IsRequest     = check.IsRequest    // a value of --on-stop is meant as one

	// Quote returns a value from outside for a message: in quotes if the value could be mistaken for a part
	// of the message.
	Quote = quote.Word
)

// InWords is fmt.Sprintf with durations in seconds, for people: "2 s", "2.83 s".
func InWords(format string, args ...any) string { return quote.InWords(format, args...) }
