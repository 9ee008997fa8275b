package preset

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Caveat is a warning that users of a preset need at the start.
type Caveat struct {
	Says  string
	Holds func(Scene) bool // nil: always
}

// Scene is the information from which caveats are decided. In the zero value nothing is
// known.
type Scene struct {
	Exe      string   // path of the program, "" if unknown
	Argv     []string // the command
	Env      []string // environment of the command
	Adaptive bool     // the stop begins with a hold that samples the traffic
	Schedule bool     // the configuration has a schedule of its own, in place of the preset's

	// StopTime is how long a given grace period leaves the command, after the longest hold,
	// for its own stop. 0: unknown.
	StopTime time.Duration

	// Read returns the text of all files that match a glob pattern, relative to the
	// directory of the command, or "" if no file can be read. A nil Read finds no files.
	Read func(pattern string) string
}

// CaveatsIn returns the caveats of p that hold in s. A caveat holds if the scene lacks
// the information to rule the caveat out.
func (p *Preset) CaveatsIn(s Scene) (says []string) {
	for _, c := range p.Caveats {
		if c.Holds == nil || c.Holds(s) {
			says = append(says, c.Says)
		}
	}
	return says
}

// cutsAll is the caveat of servers that have no graceful stop.
func cutsAll(server string) Caveat {
	return Caveat{
		Says:  server + " cuts what is under way at every stop: let the hold wait for it, with --until=drained or --until=quiet",
		Holds: func(s Scene) bool { return !s.Adaptive },
	}
}

// read returns the text of the files that match pattern.
func (s Scene) read(pattern string) string {
	if s.Read == nil || pattern == "" {
		return ""
	}
	return s.Read(pattern)
}

// option returns the value of the first argument that is an option with any of the names:
// "-t 8", "-t8", "--timeout=8".
func (s Scene) option(names ...string) (value string, found bool) {
	for i, arg := range s.Argv {
		for _, name := range names {
			rest, hasName := strings.CutPrefix(arg, name)
			switch {
			case !hasName || i == 0:
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

// mentions reports whether the arguments, the environment or a configuration file among
// the arguments contain a word. In the environment uWSGI's spelling counts too:
// UWSGI_DIE_ON_TERM for die-on-term.
func (s Scene) mentions(word string) bool {
	inText := func(text string) bool { return strings.Contains(text, word) }
	variable := strings.ToUpper(strings.ReplaceAll(word, "-", "_")) + "="
	inEntry := func(entry string) bool { return inText(entry) || strings.Contains(entry, variable) }
	return slices.ContainsFunc(s.Argv, inText) || slices.ContainsFunc(s.Env, inEntry) ||
		slices.ContainsFunc(s.configTexts(), inText)
}

// configTexts returns the configuration files among the arguments, without comments.
func (s Scene) configTexts() (texts []string) {
	for _, arg := range s.Argv[min(1, len(s.Argv)):] {
		_, file, isOption := strings.Cut(arg, "=")
		if !isOption {
			file = arg
		}
		file, _, _ = strings.Cut(file, ":") // as in app.ini:section
		if slices.Contains([]string{".ini", ".yaml", ".yml", ".json", ".xml", ".conf"}, path.Ext(file)) {
			texts = append(texts, withoutComments(s.read(file)))
		}
	}
	return texts
}

// gracefulHook reports whether uWSGI has a hook that stops its workers gracefully.
func gracefulHook(s Scene) bool { return s.mentions("gracefully_kill_them_all") }

// noControlTimeout reports whether php-fpm's process_control_timeout is 0 or unknown.
func noControlTimeout(s Scene) bool {
	config := phpConfig(s)
	text := withoutComments(s.read(config))
	for _, include := range settings(text, "include") {
		if !path.IsAbs(include) { // relative to the prefix, which contains etc/php-fpm.conf
			include = path.Join(path.Dir(path.Dir(config)), include)
		}
		text += "\n" + withoutComments(s.read(include))
	}
	timeouts := settings(text, "process_control_timeout")
	return len(timeouts) == 0 || strings.Trim(timeouts[len(timeouts)-1], "0smhd") == ""
}

// phpConfig returns the path of php-fpm's configuration: from the title that php-fpm
// writes over its command line, from an option, or the default of the official image or
// of Debian.
func phpConfig(s Scene) string {
	_, title, hasTitle := strings.Cut(strings.Join(s.Argv, " "), "master process (")
	if hasTitle {
		return strings.TrimRight(title, ") ")
	}
	if config, given := s.option("-y", "--fpm-config"); given {
		return config
	}
	version, isPHP := strings.CutPrefix(path.Base(s.Exe), "php-fpm")
	if isPHP && version != "" {
		return "/etc/php/" + version + "/fpm/php-fpm.conf"
	}
	return "/usr/local/etc/php-fpm.conf"
}

// shortUnload reports whether Tomcat's unloadDelay is the default or unknown.
func shortUnload(s Scene) bool {
	return !strings.Contains(s.read(catalinaBase(s)+"/conf/*.xml"), "unloadDelay")
}

// catalinaBase returns the directory of Tomcat's conf: from the command line of the Java
// machine, from the environment, as bin/catalina.sh's parent, or that of the official image.
func catalinaBase(s Scene) string {
	for _, arg := range s.Argv {
		if base, found := strings.CutPrefix(arg, "-Dcatalina.base="); found {
			return base
		}
	}
	for _, name := range []string{"CATALINA_BASE=", "CATALINA_HOME="} {
		for _, entry := range s.Env {
			if base, found := strings.CutPrefix(entry, name); found && base != "" {
				return base
			}
		}
	}
	for _, arg := range s.Argv[:min(1, len(s.Argv))] {
		if bin := path.Dir(arg); path.Base(bin) == "bin" && path.Base(arg) == "catalina.sh" {
			return path.Dir(bin)
		}
	}
	return "/usr/local/tomcat"
}

// sessionPooling reports whether PgBouncer's pool_mode is session or unknown. The last
// argument is PgBouncer's configuration.
func sessionPooling(s Scene) bool {
	if len(s.Argv) < 2 {
		return true
	}
	modes := settings(withoutComments(s.read(s.Argv[len(s.Argv)-1])), "pool_mode")
	return len(modes) == 0 || modes[len(modes)-1] == "session"
}

// sidekiqTimeout is Sidekiq's timeout unless configured.
const sidekiqTimeout = 25 * time.Second

// shortForSidekiq reports whether the command may have less time for its stop than Sidekiq's
// timeout. A timeout that is configured is right where the time is unknown.
func shortForSidekiq(s Scene) bool {
	text, found := s.option("-t", "--timeout")
	if !found {
		config, given := s.option("-C", "--config")
		if !given {
			config = "config/sidekiq.yml"
		}
		text, found = yamlNumber(withoutComments(s.read(config)), "timeout")
	}
	timeout := sidekiqTimeout
	if seconds, err := strconv.Atoi(text); err == nil {
		timeout = time.Duration(seconds) * time.Second
	}
	if s.StopTime == 0 {
		return !found
	}
	return s.StopTime <= timeout
}

// yamlNumber returns the value of the first line "name: value" or ":name: value" that is
// not indented.
func yamlNumber(text, name string) (value string, found bool) {
	for line := range strings.Lines(text) {
		value, found := strings.CutPrefix(strings.TrimPrefix(line, ":"), name+":")
		if found {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// mongoTimeout is how long a member of a replica set lets operations end after TERM, unless
// shutdownTimeoutMillisForSignaledShutdown is set.
const mongoTimeout = 15 * time.Second

// shortForMongo reports whether a member of a replica set may have less time for its stop
// than the default of its timeout.
func shortForMongo(s Scene) bool {
	return s.mentions("replSet") && !s.mentions("shutdownTimeoutMillisForSignaledShutdown") && s.StopTime <= mongoTimeout
}

// settings returns the values of all lines "name = value", in their order.
func settings(text, name string) (values []string) {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, "=")
		if ok && strings.TrimSpace(key) == name {
			values = append(values, strings.Trim(strings.TrimSpace(value), `"'`))
		}
	}
	return values
}

// withoutComments removes the lines that begin with ; or #, and the rest of a line from a
// space and a semicolon on.
func withoutComments(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if trimmed != "" && trimmed[0] != ';' && trimmed[0] != '#' {
			line, _, _ = strings.Cut(line, " ;")
			kept.WriteString(strings.TrimRight(line, "\n") + "\n")
		}
	}
	return kept.String()
}
