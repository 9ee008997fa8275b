package main

// rule is a kind of finding.
type rule struct{ name, says string }

// The rules, in the order of the documentation.
var rules = []rule{
	{graceTooShort, "the grace period is too short for lameduck's flags or a preStop sleep"},
	{graceDiffers, "lameduck is told a different grace period than the pod's, or none and assumes a wrong one"},
	{preStopAddsUp, "a preStop sleep comes on top of lameduck's hold"},
	{holdTwice, "two lameducks where one is enough: in the hook and the entrypoint, or one that runs another"},
	{sayHold, "a preStop hook calls lameduck without hold"},
	{stopSignal, "the stop signal of the image or the pod does not start lameduck's stop"},
	{wrongPreset, "the preset is another server's, or nginx, httpd, haproxy or php-fpm has none"},
	{noExec, "a shell stays in front of lameduck and forwards no signals"},
	{noCommand, "lameduck has no command to run, or a container's command is lameduck hold"},
	{noProgram, "lameduck is not at the path given: nothing brings it there, or a whole command line is one word"},
	{misplacedFlag, "a flag of lameduck comes after the command, which gets the flag"},
	{badFlag, "lameduck rejects a flag, a value, or their combination, or does not know a LAMEDUCK_* variable"},
}

// The names of the rules.
const (
	graceTooShort = "grace-too-short"
	graceDiffers  = "grace-differs"
	preStopAddsUp = "prestop-adds-up"
	holdTwice     = "hold-twice"
	sayHold       = "say-hold"
	stopSignal    = "stop-signal"
	wrongPreset   = "wrong-preset"
	noExec        = "no-exec"
	noCommand     = "no-command"
	noProgram     = "no-program"
	misplacedFlag = "misplaced-flag"
	badFlag       = "bad-flag"
)

// finding is a fault in a file, with the remedy.
type finding struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Rule string `json:"rule"`
	Text string `json:"message"`
}
