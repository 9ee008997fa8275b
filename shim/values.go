package shim

import (
	"fmt"
	"strings"

	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/termlog"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// The types of the values in a [Config].
type (
	Signal     = sig.Signal        // see signal(7)
	Rewrite    = sig.Rewrite       // one FROM:TO of --rewrite
	Step       = stop.Step         // one item of --stop-schedule
	Schedule   = stop.Schedule     // the value of --stop-schedule
	Condition  = stop.Reason       // the value of --until
	ExitMap    = preset.ExitCode   // one FROM:TO of --exit-code
	HealthSpec = health.Spec       // the value of --health
	HealthMode = health.Mode       // the value of --health-during
	ProbeRule  = traffic.ProbeRule // --ignore-probes or --no-ignore-probes
)

// The conditions that end a hold once its floor has passed, each stricter than the
// previous one.
const (
	Elapsed Condition = "" // no condition besides the floor
	Settled           = stop.Settled
	Quiet             = stop.Quiet
	Drained           = stop.Drained
)

// When traffic that looks like health probes is left out.
const (
	IgnoreProbesPatiently = traffic.IgnoreProbesPatiently // the default
	IgnoreProbes          = traffic.IgnoreProbes
	CountProbes           = traffic.CountProbes
)

// The ways to answer health checks while the command stops.
const (
	HealthPass  = health.Pass
	HealthFail  = health.Fail
	HealthClose = health.Close
)

// NoTerminationLog is the value of --termination-log for no termination log.
const NoTerminationLog = termlog.None

// Level is how much is written to standard error. The report of a stop is written at
// every level.
type Level int

// The levels. Each includes the previous ones.
const (
	Error Level = iota
	Warn
	Info
	Debug
)

// Choice is a setting that is on, off, or left to lameduck.
type Choice int

// The choices.
const (
	Auto Choice = iota
	Yes         // a failure is an error
	No
)

// Preset describes how a known server is stopped gracefully.
type Preset = preset.Preset

// AutoPreset is the value of --preset that asks for the preset of whichever program runs
// when a signal arrives.
const AutoPreset = preset.Auto

// Functions of other packages that the program and its linter need. The variables are never
// set.
var (
	// PlainBuild reports whether the program was built without the linker flags of the
	// Makefile; see docs/install.md.
	PlainBuild = sigcatch.Plain
	// Environ returns the environment of this process exactly as execve(2) passed the
	// environment, duplicates included.
	Environ = proc.Environ
	// IsTerminal reports whether a file descriptor is a terminal.
	IsTerminal = proc.IsTerminal

	// Presets returns all presets in the order of the documentation.
	Presets = preset.All
	// ParsePreset reads [AutoPreset] or the name or an alias of a preset, and returns the
	// preset's name.
	ParsePreset = preset.Parse
	// ParseSignal reads a signal's name or number.
	ParseSignal = sig.Parse
	// ParseDuration reads a Go duration or a bare number of seconds.
	ParseDuration = stop.ParseDuration
	// ParseSchedule reads a schedule in the form of start-stop-daemon(8)'s --retry. A single
	// duration means the stop signal, and KILL that much later.
	ParseSchedule = stop.ParseSchedule
	// ParseHealth reads LISTEN[=TARGET].
	ParseHealth = health.Parse
	// ParseHealthMode reads pass, fail or close.
	ParseHealthMode = health.ParseMode
	// Quote returns a value from outside for a message: in quotes if the value could be
	// mistaken for a part of the message.
	Quote = quote.Word
	// Printable returns any text as one line that is safe to print.
	Printable = quote.Line
)

// ParseRewrite reads FROM:TO, or FROM:0 to drop FROM. FROM has to be a signal that this
// build can catch.
func ParseRewrite(text string) (Rewrite, error) {
	r, err := sig.ParseRewrite(text)
	if err != nil {
		return Rewrite{}, err
	}
	if why := sigcatch.Uncatchable(r.From); why != "" {
		return Rewrite{}, fmt.Errorf("cannot rewrite %v, which never reaches lameduck: %s", r.From, why)
	}
	return r, nil
}

// Variable returns the name of a flag's variable: LAMEDUCK_MAX_DELAY for max-delay.
func Variable(flag string) string {
	return "LAMEDUCK_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Flag spells a flag with its value for a message: --delay=5 (LAMEDUCK_DELAY). The user may
// have given the variable, and under the name of another init can give nothing else.
func Flag(name string, value any) string {
	return fmt.Sprintf("--%s=%v (%s)", name, value, Variable(name))
}
