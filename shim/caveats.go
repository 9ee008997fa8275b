package shim

import (
	"path"
	"slices"
	"strings"
)

// Caveat is what somebody who uses a preset should hear at the start.
type Caveat struct {
	Says  string
	Holds func(Scene) bool // nil: always
}

// Scene is what a caveat may look at. The zero value is "nothing could be seen".
type Scene struct {
	Exe      string   // the program's path, where it is known
	Argv     []string // the command
	Env      []string // its environment
	Adaptive bool     // a hold that looks at the traffic comes before the stop

	// Read is the text of all files that a glob pattern finds, relative to the
	// command's directory, and "" where it finds none that can be read. Nil finds
	// none.
	Read func(pattern string) string
}

// CaveatsIn are the caveats of p that hold in s. What cannot be seen holds.
func (p *Preset) CaveatsIn(s Scene) (says []string) {
	for _, c := range p.Caveats {
		if c.Holds == nil || c.Holds(s) {
			says = append(says, c.Says)
		}
	}
	return says
}

// cutsAll is for servers for which only the hold can let anything finish.
func cutsAll(who string) Caveat {
	return Caveat{
		Says:  who + " cuts what is under way at every stop: let the hold wait for it, with --until=drained or --until=quiet",
		Holds: func(s Scene) bool { return !s.Adaptive },
	}
}

// read is the text of the files that pattern finds.
func (s Scene) read(pattern string) string {
	if s.Read == nil || pattern == "" {
		return ""
	}
	return s.Read(pattern)
}

// flag reports whether one of the names is among the arguments: "-t 8", "-t8",
// "--timeout=8".
func (s Scene) flag(names ...string) bool {
	_, found := s.option(names...)
	return found
}

// option is the value of the first of the names that is among the arguments.
func (s Scene) option(names ...string) (value string, found bool) {
	for i, arg := range s.Argv {
		for _, name := range names {
			rest, is := strings.CutPrefix(arg, name)
			switch {
			case !is || i == 0:
			case rest == "":
				return strings.Join(s.Argv[i+1:min(i+2, len(s.Argv))], ""), true
			case rest[0] == '=':
				return rest[1:], true
			case !strings.HasPrefix(name, "--"):
				return rest, true
			}
		}
	}
	return "", false
}

// mentions reports whether a word is among the arguments, in the environment
// (as uWSGI has it: UWSGI_DIE_ON_TERM) or in a file that is an argument.
func (s Scene) mentions(word string) bool {
	in := func(text string) bool { return strings.Contains(text, word) }
	variable := strings.ToUpper(strings.ReplaceAll(word, "-", "_"))
	set := func(v string) bool { return in(v) || strings.Contains(v, variable+"=") }
	if slices.ContainsFunc(s.Argv, in) || slices.ContainsFunc(s.Env, set) {
		return true
	}
	for _, arg := range s.Argv[min(1, len(s.Argv)):] {
		_, value, given := strings.Cut(arg, "=")
		if !given {
			value = arg
		}
		value, _, _ = strings.Cut(value, ":") // as in app.ini:section
		if slices.Contains([]string{".ini", ".yaml", ".yml", ".json", ".xml", ".conf"}, path.Ext(value)) && in(withoutComments(s.read(value))) {
			return true
		}
	}
	return false
}

// gracefulHook reports whether uWSGI was told what to do on TERM.
func gracefulHook(s Scene) bool { return s.mentions("gracefully_kill_them_all") }

// noControlTimeout reports whether php-fpm's process_control_timeout is 0, or
// cannot be seen.
func noControlTimeout(s Scene) bool {
	main, given := s.option("-y", "--fpm-config")
	if _, title, ok := strings.Cut(strings.Join(s.Argv, " "), "master process ("); ok { // it wrote that over its command line
		main, given = strings.TrimRight(title, ") "), true
	}
	if !given {
		main = "/usr/local/etc/php-fpm.conf" // the official image's
		if version := strings.TrimPrefix(path.Base(s.Exe), "php-fpm"); version != "" && strings.HasPrefix(path.Base(s.Exe), "php-fpm") {
			main = "/etc/php/" + version + "/fpm/php-fpm.conf" // Debian's
		}
	}
	text := withoutComments(s.read(main))
	for _, include := range settingsOf(text, "include") {
		if !path.IsAbs(include) { // from the prefix, of which etc/php-fpm.conf is below
			include = path.Join(path.Dir(path.Dir(main)), include)
		}
		text += "\n" + withoutComments(s.read(include))
	}
	timeouts := settingsOf(text, "process_control_timeout")
	return len(timeouts) == 0 || strings.Trim(timeouts[len(timeouts)-1], "0smhd") == ""
}

// shortUnload reports whether Tomcat's unloadDelay is its default, or cannot be
// seen.
func shortUnload(s Scene) bool {
	for _, arg := range s.Argv {
		if base, ok := strings.CutPrefix(arg, "-Dcatalina.base="); ok {
			return !strings.Contains(s.read(base+"/conf/*.xml"), "unloadDelay")
		}
	}
	return true
}

// sessionPooling reports whether PgBouncer's pool_mode is session, or cannot be
// seen.
func sessionPooling(s Scene) bool {
	for _, arg := range s.Argv[min(1, len(s.Argv)):] {
		if path.Ext(arg) == ".ini" {
			modes := settingsOf(withoutComments(s.read(arg)), "pool_mode")
			return len(modes) == 0 || modes[len(modes)-1] == "session"
		}
	}
	return true
}

// settingsOf are the values of "name = value", in their order.
func settingsOf(text, name string) (values []string) {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, "=")
		if ok && strings.TrimSpace(key) == name {
			values = append(values, strings.Trim(strings.TrimSpace(value), `"'`))
		}
	}
	return values
}

// withoutComments leaves out the lines that are one, and what follows a ; that
// has a space before it.
func withoutComments(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(line); trimmed != "" && trimmed[0] != ';' && trimmed[0] != '#' {
			line, _, _ = strings.Cut(line, " ;")
			kept.WriteString(strings.TrimRight(line, "\n") + "\n")
		}
	}
	return kept.String()
}
