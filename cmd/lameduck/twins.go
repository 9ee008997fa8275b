package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// prefix begins the name of every variable that is ours.
const prefix = "LAMEDUCK_"

// twins are the flags' twins in the environment. They are ours alone: the
// command does not get them, or a nested lameduck would hold twice.
type twins struct {
	values  map[string]string // by the flag's name; empty ones count as unset
	used    map[string]bool   // flags that took their value from here
	rest    []string          // the environment without the twins
	unknown []string          // a warning for each LAMEDUCK_* that is no twin

	flags    []*kong.Flag  // the flags that have twins, and others
	spelling shim.Spelling // of flags, in messages
}

// readTwins sorts the environment. As with getenv(3), the first of two
// variables of one name counts. Twins of the flags in let are somebody else's.
func readTwins(env []string, flags, let []*kong.Flag) *twins {
	t := &twins{values: map[string]string{}, used: map[string]bool{}, flags: flags}
	names, others := twinsOf(flags), twinsOf(let)
	for _, entry := range env {
		name, value, isVariable := strings.Cut(entry, "=")
		switch {
		case !isVariable: // getenv(3) would not find it
		case slices.Contains(names, name):
			if _, again := t.values[name]; !again {
				t.values[name] = value
			}
			continue
		case strings.HasPrefix(name, prefix) && !fromService(name) && !slices.Contains(others, name) && !slices.Contains(hooked, name):
			t.unknown = append(t.unknown, fmt.Sprintf("%s is no variable of lameduck: did you mean %s?", shim.Quote(name), nearest(name, names)))
		}
		t.rest = append(t.rest, entry)
	}
	return t
}

// twinsOf are the names of the flags' variables.
func twinsOf(flags []*kong.Flag) (names []string) {
	for _, flag := range flags {
		if !slices.Contains(twinless, flag.Name) {
			names = append(names, twin(flag.Name))
		}
	}
	return names
}

// hooked are the variables that --on-stop is given, for a lameduck in it.
var hooked = []string{"LAMEDUCK_PID", "LAMEDUCK_SIGNAL"}

// fromService knows the variables that Kubernetes injects for a Service called
// lameduck.
func fromService(name string) bool {
	return name == "LAMEDUCK_PORT" || strings.HasPrefix(name, "LAMEDUCK_PORT_") || strings.HasPrefix(name, "LAMEDUCK_SERVICE_")
}

// twin is the variable for a flag.
func twin(flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Validate is for kong.Resolver; there is nothing to check.
func (t *twins) Validate(*kong.Application) error { return nil }

// Resolve gives kong the value of a flag that the command line left out.
func (t *twins) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	value := t.values[twin(flag.Name)]
	if value == "" {
		return nil, nil
	}
	t.used[flag.Name] = true
	if flag.IsBool() {
		return parseBool(twin(flag.Name), value)
	}
	return value, nil
}

// parseBool reads the value of a variable that only says yes or no.
func parseBool(name, value string) (bool, error) {
	switch strings.ToLower(value) {
	case "1", "true", "yes", "on":
		return true, nil
	case "0", "false", "no", "off":
		return false, nil
	}
	return false, &variableError{name, value}
}

// variableError is a variable with a value that is neither yes nor no. The parser puts the
// name of the flag before it, which was not given.
type variableError struct{ name, value string }

func (e *variableError) Error() string {
	return fmt.Sprintf("%s=%s: %q is neither: give true or false", e.name, shim.Quote(e.value), e.value)
}

// source is what a flag's value came from, as a user would look for it.
func (t *twins) source(flag string) string {
	if t.used[flag] {
		return twin(flag)
	}
	return t.spelling.In("--" + flag)
}

// spellAsVariables has messages name the variables of flags, or in their place flags of
// another program's own.
func (t *twins) spellAsVariables(own map[string]string) {
	t.spelling = shim.Spelling{}
	for _, flag := range t.flags {
		if !slices.Contains(twinless, flag.Name) {
			t.spelling[flag.Name] = twin(flag.Name)
		}
	}
	maps.Copy(t.spelling, own)
}

// noEffect is about a flag that changes nothing beside the others: an error
// where somebody wrote it for this command, a warning where it came from the
// environment.
func (t *twins) noEffect(cfg *shim.Config, flag string, value any, why string) error {
	text := fmt.Sprintf("%s=%s has no effect %s", t.source(flag), shim.Quote(fmt.Sprint(value)), t.spelling.In(why))
	if t.used[flag] {
		cfg.Warnings = append(cfg.Warnings, text)
		return nil
	}
	return fmt.Errorf("%s, or leave it out", text)
}
