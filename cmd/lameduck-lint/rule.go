package main

// rule is a kind of finding.
type rule struct{ name, says string }

// The rules, in the order of the documentation.
var rules = []rule{
	{graceTooShort, "the grace period is too short for what lameduck was told to do, a preStop sleep counted too"},
	{graceDiffers, "lameduck is told another grace period than the pod gives, or none where it would assume a wrong one"},
	{probeGrace, "a liveness or startup probe gives less than the grace period that lameduck goes by"},
	{preStopTooLong, "a preStop sleep takes the whole grace period"},
	{preStopAddsUp, "a preStop sleep comes on top of lameduck's hold"},
	{holdTwice, "lameduck hold is the preStop hook of a container whose lameduck holds already"},
	{sharedPID, "lameduck hold runs where it takes other containers' connections for its own"},
	{stopSignal, "the stop signal of the image or the pod begins no stop of lameduck's"},
	{readinessFails, "the stop makes the pod unready while it still serves"},
	{probeHolds, "readiness probes come so often that traffic never seems to stop"},
	{noExec, "a shell stays in front of the server and passes no signal on"},
	{badFlag, "lameduck does not take a flag, a value, or what they make together"},
	{unknownVariable, "a LAMEDUCK_* variable is none of lameduck's"},
	{unusedVariable, "LAMEDUCK_* variables are set where no lameduck runs"},
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
