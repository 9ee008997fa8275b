package preset

import (
	"path"
	"strings"
)

// Match returns the preset of a process by the target of /proc/PID/exe and the words of
// /proc/PID/cmdline, or nil if no preset matches: a shell may still execute a server.
// With an empty exe, for a link that may not be read, the command line decides.
//
// The executable goes first, because some servers write their state over the command
// line ("nginx: master process nginx"). Interpreters are matched by the script that they
// run, which again may be a title written over the command line.
func Match(exe string, argv []string) *Preset {
	if len(argv) == 0 {
		return nil
	}
	file := programName(strings.TrimSuffix(exe, " (deleted)"))
	firstWord, _, _ := strings.Cut(argv[0], " ")
	title := programName(strings.TrimSuffix(firstWord, ":"))
	interpreter := interpreterAmong(file, title)
	if interpreter != "" {
		script := scriptOf(interpreter, argv)
		if script != "" {
			return ofProgram(script)
		}
	}
	if p := ofProgram(file); p != nil {
		return p
	}
	return ofProgram(title)
}

// MatchCommand returns the preset that a command will probably match once the command
// runs: that of the command itself, or that of the first argument, which an entrypoint
// script usually executes. MatchCommand returns nil if no preset matches.
func MatchCommand(command []string) *Preset {
	for i := range min(len(command), 2) {
		if p := Match("", command[i:]); p != nil {
			return p
		}
	}
	return nil
}

// programName returns the base name of a path. A version at the end of the name is cut
// off unless a preset lists the name with the version.
func programName(file string) string {
	if file == "" {
		return ""
	}
	name := path.Base(file)
	if ofProgram(name) != nil {
		return name
	}
	return strings.TrimRight(name, "0123456789.-")
}

// interpreterAmong returns the first of names that is an interpreter, or "".
func interpreterAmong(names ...string) string {
	for _, name := range names {
		switch name {
		case "python", "ruby", "java", "beam.smp", "pypy":
			return name
		}
	}
	return ""
}

// scriptOf returns the name of the script or module that an interpreter runs, or "" if
// the command line does not name any.
func scriptOf(interpreter string, argv []string) string {
	switch interpreter {
	case "java":
		return tomcatIn(argv)
	case "beam.smp":
		return rabbitmqIn(argv)
	}
	args := argv[1:]
	for i, arg := range args {
		next := args[i+1:]
		switch {
		case interpreter != "ruby" && arg == "-m" && len(next) > 0:
			module, _, _ := strings.Cut(next[0], ".")
			return module
		case arg == "-c" || arg == "-e": // the program itself instead of a script
			return ""
		case arg == "exec" && i > 0 && programName(args[i-1]) == "bundle" && len(next) > 0:
			return programName(next[0])
		case strings.HasPrefix(arg, "-") || i > 0 && takesValue(interpreter, args[i-1]) || programName(arg) == "bundle":
		default:
			return programName(arg)
		}
	}
	return ""
}

// takesValue reports whether the word after an interpreter's option is the option's
// value.
func takesValue(interpreter, option string) bool {
	if interpreter == "ruby" {
		return option == "-I" || option == "-r" || option == "-C" || option == "-E"
	}
	return option == "-W" || option == "-X"
}

// tomcatIn returns "tomcat" if the command line of a Java machine starts Tomcat.
func tomcatIn(argv []string) string {
	for _, arg := range argv {
		if strings.HasPrefix(arg, "org.apache.catalina.startup.") {
			return "tomcat"
		}
	}
	return ""
}

// rabbitmqIn returns "rabbitmq-server" if the command line of an Erlang machine starts
// RabbitMQ.
func rabbitmqIn(argv []string) string {
	for i, arg := range argv {
		if arg == "-s" && i+1 < len(argv) && argv[i+1] == "rabbit" || strings.HasPrefix(arg, "rabbitmq_prelaunch") {
			return "rabbitmq-server"
		}
	}
	return ""
}
