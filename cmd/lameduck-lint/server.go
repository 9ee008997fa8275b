package main

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/lameduck-init/lameduck/shim"
)

// serverIn returns the preset of the server that words run, or nil.
func serverIn(words ...word) *shim.Preset {
	outline, err := shim.Review(shim.Config{Command: texts(words), Preset: shim.AutoPreset})
	if err != nil {
		return nil
	}
	return outline.Preset
}

// idleRE matches commands that serve nobody, and what only the shell knows.
var idleRE = regexp.MustCompile(`^(\$\(\)|sleep|tail|cat|echo|true|cd|service|.*sh)$`)

// noExec: bash and BusyBox execute a script's last command in their own place; dash does not. A
// command is a server if its name is known, or if the container has a port.
func noExec(c *container, report reporter) {
	isDash := func(shell string) bool { return shell == "sh" || shell == "dash" }
	small := smallRE.MatchString(c.Image)
	if call := c.call; c.entry.line > 0 && !small && isDash(call.shell) {
		report(call.program.line,
			"%s (if it is dash) forwards no signals: lameduck does not learn of the stop, and is killed; put exec "+
				"before %s", call.shell, call.program.text)
	}
	for _, last := range c.ends {
		switch {
		case small || c.entry.Group || !dashRE.MatchString(c.Image):
		case npmRE.MatchString(strings.Join(texts(last.words()), " ")):
			report(last.program.line, "npm runs its script by sh, which passes no stop signal on, so the server ends by "+
				"KILL; write the script's own command, such as node server.js")
		case !isDash(last.shell) || idleRE.MatchString(last.program.base()):
		case len(c.Ports) > 0 || serverIn(last.words()...) != nil:
			report(last.program.line, "%s stays in front of %s and passes no stop signal on, so %[2]s ends by KILL; write "+
				"exec %[2]s", last.shell, last.program.text)
		}
	}
}

// cutAtTERM reports servers that get TERM, at which they drop requests, before any hook or
// lameduck has waited.
func cutAtTERM(c *container, report reporter) {
	var program word
	switch {
	case len(c.words) == 0:
		program.text, _, _ = strings.Cut(c.Image, ":") // Docker's nginx runs nginx
	case len(c.ends) > 0 && c.ends[0].shell == "":
		program = c.ends[0].program
	}
	signal, server := c.Lifecycle.StopSignal, serverIn(program)
	s, err := shim.ParseSignal(signal.text)
	isTERM := s.String() == "TERM" || err != nil && termRE.MatchString(c.Image)
	if server == nil || finishing[server.Name] == "" || !isTERM || c.call != nil || c.Lifecycle.PreStop != nil {
		return
	}
	remedy := "lifecycle: {preStop: {sleep: {seconds: 15}}}"
	if c.pod == nil {
		remedy = "STOPSIGNAL SIG" + finishing[server.Name]
	}
	report(cmp.Or(signal.line, program.line), "the stop signal is TERM, at which %s drops requests in flight; write %s",
		server.Name, remedy)
}

// daemonizes reports nginx as a command where no configuration of its own can keep it in front. A
// Dockerfile's ENTRYPOINT alone may get arguments from a pod.
func daemonizes(c *container, report reporter) {
	isComplete := c.pod != nil || len(c.Args) > 0
	isKnown := isComplete && !c.configured && (libraryRE.MatchString(c.Image) || c.pod == nil && termRE.MatchString(c.Image))
	for _, last := range c.ends {
		if isKnown && last.program.base() == "nginx" && len(last.args) == 0 && !last.unclear {
			report(last.program.line, `nginx goes into the background, and the container ends at once; write nginx -g "daemon off;"`)
		}
	}
}
