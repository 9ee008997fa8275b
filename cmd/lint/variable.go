package main

import (
	"strings"

	"github.com/agext/levenshtein"
)

// variable is one of the environment.
type variable struct {
	name  string
	value word
}

// prefix begins the name of every variable of lameduck's.
const prefix = "LAMEDUCK_"

// twinOf is the variable of a flag.
func twinOf(flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// twinNames are the flags by their variables.
func twinNames() map[string]string {
	names := map[string]string{}
	for flag := range setters {
		names[twinOf(flag)] = flag
	}
	return names
}

// lent knows variables that are not for lameduck: what --on-stop is given, and
// what Kubernetes injects for a Service called lameduck.
func lent(name string) bool {
	return name == "LAMEDUCK_PID" || name == "LAMEDUCK_SIGNAL" || name == "LAMEDUCK_PORT" ||
		strings.HasPrefix(name, "LAMEDUCK_PORT_") || strings.HasPrefix(name, "LAMEDUCK_SERVICE_")
}

// nearest is the name that needs the fewest edits to be the one given.
func nearest[T any](name string, names map[string]T) (best string) {
	fewest := -1
	for candidate := range names {
		n := levenshtein.Distance(name, candidate, nil)
		if fewest < 0 || n < fewest || n == fewest && candidate < best {
			best, fewest = candidate, n
		}
	}
	return best
}
