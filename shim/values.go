package shim

import (
	"time"

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

// Explain returns a plan in plain words: that of a preStop hook, or that of a run.
func Explain(p *Plan, asHook bool) string { return report.Explain(p, asHook) }

// Variable returns the name of a flag's variable: LAMEDUCK_MAX_DELAY for max-delay.
func Variable(flag string) string { return plan.Variable(flag) }

// Flag spells a flag with its value for a message: --delay=5 (LAMEDUCK_DELAY).
func Flag(name string, value any) string { return plan.Flag(name, value) }

// PresetNamed returns the preset with a name or an alias, in any case, or nil.
func PresetNamed(name string) *Preset { return preset.Named(name) }

// Presets returns all presets in the order of the documentation.
func Presets() []Preset { return preset.All() }

// ParseSignal reads a signal's name or number.
func ParseSignal(text string) (Signal, error) { return sig.Parse(text) }

// ParseDuration reads a Go duration or a bare number of seconds.
func ParseDuration(text string) (time.Duration, error) { return stop.ParseDuration(text) }

// ParseSchedule reads a schedule in the form of start-stop-daemon(8)'s --retry. A single
// duration means the stop signal, and KILL that much later.
func ParseSchedule(text string) (stop.Schedule, error) { return stop.ParseSchedule(text) }

// ParseHealth reads LISTEN[=TARGET].
func ParseHealth(text string) (*check.Spec, error) { return check.Parse(text) }

// IsRequest reports whether a value of --on-stop is a URL, or a method and a URL.
func IsRequest(text string) bool { return check.IsRequest(text) }

// ParseRequest reads a URL, or a method and a URL.
func ParseRequest(text string) (*Request, error) { return check.ParseRequest(text) }

// ParseRewrite reads FROM:TO, or FROM:0 to drop FROM.
func ParseRewrite(text string) (Rewrite, error) { return sig.ParseRewrite(text) }

// InWords is fmt.Sprintf with durations in seconds, for people: "2 s", "2.83 s".
func InWords(format string, args ...any) string { return quote.InWords(format, args...) }

// Quote returns a value from outside for a message: in quotes if the value could be mistaken
// for a part of the message.
func Quote(value string) string { return quote.Word(value) }
