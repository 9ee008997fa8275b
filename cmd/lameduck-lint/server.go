package main

import (
	"cmp"
	"fmt"

	"github.com/lameduck-init/lameduck/shim"
)

// idle matches commands that serve nobody, and what only the shell knows.
const idle pattern = `^(\$\(\)|:|\[|sleep|tail|cat|echo|eval|true|cd|service|set|shift|test|trap|umask|wait|.*sh)$`

// noExec: bash and BusyBox execute a script's last command in their own place; dash does not.
// lameduck waits for what runs behind a shell, unless --linger=0 forbids it, or another init has
// lameduck's place.
func noExec(s *stop, report reporter) {
	if call := s.call; s.entry.line > 0 && s.stays(call) {
		perhaps := " (if it is dash)"
		if call.file {
			perhaps = ""
		}
		report(call.program.line, "%s%s forwards no signals: lameduck does not learn of the stop, and is killed; "+
			"put exec before %s", call.shell, perhaps, call.program.text)
	}
	waits := s.entry.line > 0 && (s.entry.Linger > 0 || !s.dropIn && !s.entry.LingerGiven)
	if s.last != nil && !s.last.traps && !waits {
		staysInFront(s, s.last, report)
	}
}

// staysInFront reports what passes no stop signal on to the server. A command is a server if its name
// is known, or if the container has a port.
func staysInFront(s *stop, last *command, report reporter) {
	isDash := library(dashImages).matches(s.Image) && !otherSh.matches(s.Image)
	settings := s.file("./package.json") + s.file("./.yarnrc.yml")
	for _, r := range runners {
		if isDash && r.call.matches(last.String()) && !passesOn.matches(settings) {
			report(last.program.line, "%s by sh, which passes no stop signal on, so the server ends by KILL; "+
				"write %s", r.fault, r.remedy)
			return
		}
	}
	for _, c := range s.runs {
		if name := last.program.base(); (name == "wait" || name == "tail") && serverIn(&c) != nil {
			report(c.program.line, "%s passes no stop signal on to %s, which ends by KILL; have the script trap "+
				"TERM, or put lameduck in front", name, c.program.text)
		}
	}
	isServer := len(s.Ports) > 0 && !idle.matches(last.program.base()) || s.server != nil
	if s.stays(last) && (last.file || isDash) && isServer {
		report(last.program.line, "%s stays in front of %s and passes no stop signal on, so %[2]s ends by KILL; "+
			"write exec %[2]s", last.shell, last.program.text)
	}
}

// cutAtTERM reports servers that get TERM, at which they drop requests, before any hook or
// lameduck has waited. An init that signals the group gets ahead of a script's own handler.
func cutAtTERM(s *stop, report reporter) {
	last := cmp.Or(s.last, new(command)) // without words: the image's
	if s.signal != shim.TERM || s.call != nil || s.Lifecycle.PreStop != nil || len(last.rewrites) > 0 {
		return
	}
	if dropsAtTERM(s.server) && last.shell == "" {
		remedy := "lifecycle: {preStop: {sleep: {seconds: 15}}}"
		if s.pod == nil {
			remedy = fmt.Sprintf("STOPSIGNAL SIG%v", s.server.Schedule[0].Signal)
		}
		report(cmp.Or(s.Lifecycle.StopSignal.line, last.program.line), "the stop signal is TERM, at which %s drops "+
			"requests in flight; write %s", s.server.Name, remedy)
	}
	for _, c := range s.runs {
		server, remedy := serverIn(&c), "leave -g out"
		if c.init == "dumb-init" {
			remedy = "give dumb-init -c"
		}
		if server == nil || !c.group {
			continue
		}
		if server.GroupCuts || c.traps && c.shell != "" && dropsAtTERM(server) {
			report(c.program.line, "%s sends TERM to all processes, and so to those of %s, which drop what is in "+
				"flight; %s", c.init, server.Name, remedy)
		}
	}
}
