package shim

import (
	"path"
	"strings"
)

// Recognize returns the name of the preset that fits a process, or "" if none does.
// exe is the target of /proc/PID/exe ("" if unreadable), argv is /proc/PID/cmdline.
func Recognize(exe string, argv []string) string {
	if p := recognise(exe, argv); p != nil {
		return p.Name
	}
	return ""
}

// recognise finds the preset of a process by what /proc/PID/exe and cmdline say,
// or nil where it is none that is known: a shell may yet execute one. Where exe
// may not be read (""), the command line does.
//
// The executable comes first, since some write their state over their command
// line ("nginx: master process nginx"). An interpreter is known by what it runs,
// and that again may be its name on the command line, written over or not.
func recognise(exe string, argv []string) *Preset {
	if len(argv) == 0 {
		return nil
	}
	file := programOf(strings.TrimSuffix(exe, " (deleted)"))
	title, _, _ := strings.Cut(argv[0], " ")
	called := programOf(strings.TrimSuffix(title, ":"))
	if interpreter := kind(file, called); interpreter != "" {
		if script := scriptOf(interpreter, argv); script != "" {
			return presetOf(script)
		}
	}
	for _, name := range []string{file, called} {
		if p := presetOf(name); p != nil {
			return p
		}
	}
	return nil
}

// programOf is the name of a program by its path: the base name, without a version
// where it is known without.
func programOf(file string) string {
	if file == "" {
		return ""
	}
	name := path.Base(file)
	if presetOf(name) != nil {
		return name
	}
	return strings.TrimRight(name, "0123456789.-")
}

// kind is the interpreter that one of the names is.
func kind(names ...string) string {
	for _, name := range names {
		switch name {
		case "python", "ruby", "java", "beam.smp", "pypy":
			return name
		}
	}
	return ""
}

// scriptOf is the name of what an interpreter runs, or "" where argv does not
// say it.
func scriptOf(interpreter string, argv []string) string {
	switch interpreter {
	case "java":
		return catalina(argv)
	case "beam.smp":
		return rabbit(argv)
	}
	args := argv[1:]
	for i, arg := range args {
		next := args[i+1:]
		switch {
		case interpreter != "ruby" && arg == "-m" && len(next) > 0:
			module, _, _ := strings.Cut(next[0], ".")
			return module
		case arg == "-c" || arg == "-e": // a program in place of a script
			return ""
		case arg == "exec" && i > 0 && programOf(args[i-1]) == "bundle" && len(next) > 0:
			return programOf(next[0])
		case strings.HasPrefix(arg, "-") || i > 0 && takesValue(interpreter, args[i-1]) || programOf(arg) == "bundle":
		default:
			return programOf(arg)
		}
	}
	return ""
}

// takesValue reports whether an interpreter's option has its value in the next
// word.
func takesValue(interpreter, option string) bool {
	if interpreter == "ruby" {
		return option == "-I" || option == "-r" || option == "-C" || option == "-E"
	}
	return option == "-W" || option == "-X"
}

// catalina is Tomcat, where that is what a Java machine runs.
func catalina(argv []string) string {
	for _, arg := range argv {
		if strings.HasPrefix(arg, "org.apache.catalina.startup.") {
			return "tomcat"
		}
	}
	return ""
}

// rabbit is RabbitMQ, where that is what an Erlang machine runs.
func rabbit(argv []string) string {
	for i, arg := range argv {
		if arg == "-s" && i+1 < len(argv) && argv[i+1] == "rabbit" || strings.HasPrefix(arg, "rabbitmq_prelaunch") {
			return "rabbitmq-server"
		}
	}
	return ""
}
