package preset

import (
	"cmp"
	"path"
	"slices"
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
	for _, name := range []string{file, title} {
		if script := scriptOf(name, argv); script != "" {
			return ofProgram(script)
		}
	}
	return cmp.Or(ofProgram(file), ofProgram(title))
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
	name := path.Base(file) // "." if there is none
	if ofProgram(name) != nil {
		return name
	}
	return strings.TrimRight(name, "0123456789.-")
}

// scriptOf returns the name of the script or module that an interpreter runs, or "" if
// the command line does not name any, or the program is none.
func scriptOf(interpreter string, argv []string) string {
	line := "\x00" + strings.Join(argv, "\x00") + "\x00"
	started := func(words string) bool { return strings.Contains(line, "\x00"+words) }
	// The options that a value follows, of those that are known by their scripts.
	valued := map[string]string{"python": "-W -X", "pypy": "-W -X", "ruby": "-I -r -C -E"}[interpreter]
	switch {
	case interpreter == "java" && started("org.apache.catalina.startup."):
		return "tomcat"
	case interpreter == "beam.smp" && (started("-s\x00rabbit\x00") || started("rabbitmq_prelaunch")):
		return "rabbitmq-server"
	case valued == "":
		return ""
	}
	for i, arg := range argv[1:] {
		before := argv[i]
		switch {
		case before == "-m":
			module, _, _ := strings.Cut(arg, ".")
			return module
		case strings.HasPrefix(arg, "-") || slices.Contains(strings.Fields(valued), before):
		case programName(arg) != "bundle" && arg != "exec":
			return programName(arg)
		}
	}
	return ""
}
