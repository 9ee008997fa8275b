package main

// rule is a kind of finding.
type rule struct{ name, says string }

// The rules, in the order of the documentation.
var rules = []rule{
	{graceTooShort, "the grace period is too short for lameduck's flags, including a preStop sleep"},
	{graceDiffers, "lameduck is told a different grace period than the pod's, or none and assumes a wrong one"},
	{probeGrace, "a liveness or startup probe gives less time than lameduck's grace period"},
	{preStopTooLong, "a preStop sleep takes the whole grace period"},
	{preStopAddsUp, "a preStop sleep comes on top of lameduck's hold"},
	{holdTwice, "lameduck hold is the preStop hook of a container whose entrypoint already holds"},
	{sharedPID, "lameduck hold would mistake other containers' connections for its own"},
	{stopSignal, "the stop signal of the image or the pod does not start lameduck's stop"},
	{readinessFails, "the stop makes the pod unready while it still serves"},
	{probeHolds, "readiness probes count as traffic, and are so frequent that traffic never seems to stop"},
	{noExec, "a shell stays in front of the server and forwards no signals"},
	{noCommand, "lameduck has no command to run"},
	{noProgram, "lameduck is not at the path given: its volume is not mounted, or a whole command line is one word"},
	{nested, "lameduck runs another lameduck"},
	{misplacedFlag, "a flag of lameduck comes after the command, which gets the flag"},
	{badFlag, "lameduck rejects a flag, a value, or their combination"},
	{unknownVariable, "a LAMEDUCK_* variable is unknown to lameduck, or the prefix is mistyped"},
	{unusedVariable, "LAMEDUCK_* variables are set, but no lameduck runs"},
}

// The names of the rules.
const (
	graceTooShort   = "grace-too-short"
	graceDiffers    = "grace-differs"
	probeGrace      = "probe-grace"
	preStopTooLong  = "prestop-too-long"
	preStopAddsUp   = "prestop-adds-up"
	holdTwice       = "hold-twice"
	sharedPID       = "shared-pid"
	stopSignal      = "stop-signal"
	readinessFails  = "readiness-fails"
	probeHolds      = "probe-holds"
	noExec          = "no-exec"
	noCommand       = "no-command"
	noProgram       = "no-program"
	nested          = "nested"
	misplacedFlag   = "misplaced-flag"
	badFlag         = "bad-flag"
	unknownVariable = "unknown-variable"
	unusedVariable  = "unused-variable"
)

// finding is a fault in a file, with the remedy.
type finding struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Rule string `json:"rule"`
	Text string `json:"message"`
}
