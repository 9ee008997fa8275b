package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// Prefix begins the name of every variable of lameduck.
const Prefix = "LAMEDUCK_"

// hookVariables are set by lameduck for --on-stop, and so for a lameduck in --on-stop.
var hookVariables = []string{"LAMEDUCK_PID", "LAMEDUCK_SIGNAL"}

// Foreign reports whether a variable of env with Prefix is for another reader: Kubernetes
// makes variables for Services called lameduck or lameduck-NAME, and lameduck makes some for
// --on-stop.
func Foreign(name, value string, env []string) bool {
	ofLameduck := name == "LAMEDUCK_PORT" || strings.HasPrefix(name, "LAMEDUCK_PORT_") || strings.HasPrefix(name, "LAMEDUCK_SERVICE_")
	switch {
	case ofLameduck, slices.Contains(hookVariables, name), isAddress(value):
		return true
	case variable(flagsOf(new(Run)), name) != nil: // LAMEDUCK_COUNT_PORT=80 beside a Service called lameduck-count
		return false
	}
	return serviceLinksIn(env).made(name)
}

// envFlags are the variables of flags. The command does not get these variables: a
// lameduck in the command would hold as well.
type envFlags struct {
	values  map[string]string // by the variable's name; empty ones count as unset
	used    map[string]bool   // flags that took their value from here
	rest    []string          // the environment without the variables of flags
	unknown []Unknown
}

// Unknown is a variable that begins with Prefix and belongs to no flag. Hint says what would
// be right.
type Unknown struct{ Name, Hint string }

func (u Unknown) String() string {
	return fmt.Sprintf("unknown variable %s: %s", shim.Quote(u.Name), u.Hint)
}

// hintFor returns what to do about a variable that no flag of flags has.
func hintFor(name string, flags []flag) string {
	word := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, Prefix)), "_", "-")
	switch f := long(flags, word); {
	case f != nil && f.env == "":
		return "--" + f.name() + " has no variable, give the flag"
	case f != nil && f.name() != word: // --no-ignore-probes
		return "did you mean " + f.env + "=false?"
	}
	return "did you mean " + nearest(name, variables(flags)) + "?"
}

// readEnv sorts the environment. As with getenv(3), the first of two variables of one
// name counts. Blanks and newlines around a value, as left by an editor or by $(cat FILE),
// do not count. Variables of the flags in foreign, another grammar's, stay in the rest.
func readEnv(env []string, flags, foreign []flag) *envFlags {
	e := &envFlags{values: map[string]string{}, used: map[string]bool{}}
	for _, entry := range env {
		name, value, isVariable := strings.Cut(entry, "=")
		switch {
		case !isVariable || !strings.HasPrefix(name, Prefix): // getenv(3) finds no entry without "="
		case variable(flags, name) != nil && !isAddress(value):
			if _, again := e.values[name]; !again {
				e.values[name] = strings.TrimSpace(value)
			}
			continue
		case variable(foreign, name) == nil && !Foreign(name, value, env):
			e.unknown = append(e.unknown, Unknown{name, hintFor(name, slices.Concat(flags, foreign))})
		}
		e.rest = append(e.rest, entry)
	}
	return e
}

// variable returns the flag with a variable, or nil.
func variable(flags []flag, name string) *flag {
	return find(flags, func(f *flag) bool { return f.env == name })
}

// variables returns the names of the flags' variables.
func variables(flags []flag) (names []string) {
	for _, f := range flags {
		if f.env != "" {
			names = append(names, f.env)
		}
	}
	return names
}

// Validate is for kong.Resolver.
func (e *envFlags) Validate(*kong.Application) error { return nil }

// Resolve returns the value of a flag that is not on the command line. kong's own way to
// read the environment takes an empty variable for a value.
func (e *envFlags) Resolve(_ *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
	for _, name := range f.Envs {
		if value := e.values[name]; value != "" {
			e.used[f.Name] = true
			return value, nil
		}
	}
	return nil, nil
}

// Lookup returns the value of a variable as getenv(3) does.
func Lookup(env []string, name string) (value string, set bool) {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// AsksJSON reports whether the environment asks for JSON, for errors before the flags and
// variables have been read.
func AsksJSON(env []string) bool {
	value, _ := Lookup(env, "LAMEDUCK_LOG_FORMAT")
	json, err := parseFormat(strings.TrimSpace(value))
	return err == nil && json
}
