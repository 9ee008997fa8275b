package main

import (
	"path"
	"slices"
)

func holdTwice(s *stop, report reporter) {
	if s.hold.Holds() && s.entry.Holds() {
		report(s.hold.line,
			"the entrypoint is a lameduck that holds by itself: lameduck hold returns at once, or the holds add up "+
				"where the entrypoint is not PID 1; leave one of them out")
	}
	if inner := callIn(s.commandsIn(s.entry.command)); inner != nil {
		report(inner.program.line,
			"lameduck runs another lameduck, which is of no use, or adds a hold to the hold; leave one of them out")
	}
}

// noCommand: an image from scratch is for copying, and needs no command.
func noCommand(s *stop, report reporter) {
	remedy := "the pod's command replaces that of the image: add that one"
	if s.pod == nil {
		remedy = "ENTRYPOINT clears the CMD of " + s.Image +
			", and in shell form gets none: repeat the CMD after an ENTRYPOINT in brackets, or give a command " +
			"in the pod"
	}
	switch {
	case s.call != nil && s.call.subcommand == "hold" && s.call.shell == "":
		report(s.call.program.line,
			"the container runs lameduck hold, which runs no command and ends after a hold; leave out hold and give "+
				"the command, or make it the preStop hook")
	case s.entry.line > 0 && s.Command != nil && !s.entry.unclear && len(s.entry.command) == 0 && s.Image != "scratch":
		report(s.entry.line, "lameduck does not start: no command to run: %s", remedy)
	}
}

// noProgram reports a command line in one word, and a lameduck at a path to which nothing
// brings one: a volume that the container does not mount, an empty volume that nothing fills,
// or a library image. An image of another repository may have a lameduck at any path.
func noProgram(s *stop, report reporter) {
	check := func(call *command, list []command, outcome string) {
		switch {
		case len(list) > 0 && oneWord.matches(list[0].program.text):
			program := list[0].program
			report(program.line, "no shell splits %q into words, so %s; make each word an item of its own",
				program.text, outcome)
		case call == nil:
		case s.isFolder(call.program.text):
			report(call.program.line, "%s is the folder of a volume, so %s; write %[1]s/lameduck", call.program.text,
				outcome)
		case s.isMissing(call.program.text):
			report(call.program.line,
				"%s is missing: no init container or volume provides it, so %s; mount the volume that "+
					"has it (see docs/install.md)", call.program.text, outcome)
		}
	}
	check(s.call, s.runs, "the container does not start")
	check(s.hookCall, s.hook, "the hook fails, and nothing holds")
}

// oneWord matches a call of lameduck that is one word.
const oneWord pattern = `^(\S*/)?lameduck\s`

// isMissing reports whether nothing brings a program to the container.
func (s *stop) isMissing(program string) bool {
	if s.pod == nil || s.Image == "" || !path.IsAbs(program) {
		return false
	}
	if mount := s.mountAt(program); mount.Name != "" {
		return s.pod.isEmpty(mount.Name)
	}
	brings := func(init container) bool { return init.mountAt(program).Name != "" }
	return slices.ContainsFunc(s.pod.InitContainers, brings) || library(serverImages).matches(s.Image)
}

// isFolder reports whether a volume of folders is mounted at the very path of a program.
func (s *stop) isFolder(program string) bool {
	mount := s.mountAt(program)
	if path.Clean(mount.MountPath) != path.Clean(program) || mount.SubPath != "" {
		return false
	}
	volume := s.pod.volume(mount.Name)
	return volume.EmptyDir != nil || volume.Image != nil
}

func misplacedFlag(s *stop, report reporter) {
	program := s.entry.command
	for i, w := range program {
		if w.text == "--" || callIn(s.commandsIn(program)) != nil {
			return
		}
		if i > 0 && beginsWithOurs(program[i:]) {
			report(w.line,
				"%s comes after the command, so %s gets the flag, and lameduck does not: put the flag before %[2]s, "+
					"unless %[2]s has a flag of that name", w.text, program[0].text)
		}
	}
}

func badFlag(s *stop, report reporter) {
	if call := s.hookCall; call != nil && call.subcommand == "" {
		report(call.program.line, "a preStop hook without the word hold: say lameduck hold")
	}
	for _, l := range []*lameduck{&s.entry, &s.hold} {
		if len(s.Ports) > 0 && l.CountPorts != nil && !slices.ContainsFunc(l.CountPorts, s.pod.has) {
			report(l.lineOf("count-port"), "no container of the pod has a port of --count-port: if nothing listens "+
				"there, all ports count; give the server's")
		}
	}
	for _, f := range slices.Concat(s.entry.refused, s.hold.refused) {
		report(f.Line, "%s", f.Text)
	}
}
