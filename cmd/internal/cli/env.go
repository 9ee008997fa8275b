package cli

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// Prefix begins the name of every variable of lameduck.
const Prefix = "LAMEDUCK_"

// Variable returns the name of a flag's variable, or "".
func Variable(f *kong.Flag) string {
	if f.Tag.Group == "Questions:" {
		return ""
	}
	return shim.Variable(f.Name)
}

// readEnv sorts the environment, and gives the flags that are not on the command line the values of
// their variables. As with getenv(3), the first of two variables of one name counts. An empty
// variable counts as unset, and so do blanks and newlines around a value, as left by an editor or by
// $(cat FILE). The command does not get the variables of the flags: a lameduck in the command would
// hold as well. Variables of flags that only other commands of lameduck have stay.
func (l *Line) readEnv(env []string) {
	all := byName(l.all)
	for _, entry := range env {
		name, value, isVariable := strings.Cut(entry, "=")
		f := l.named[name]
		switch {
		case !isVariable || !strings.HasPrefix(name, Prefix): // getenv(3) finds no entry without "="
		case f != nil && !isAddress(value):
			value, _ = Lookup(env, name)
			if text := strings.TrimSpace(value); text != "" && !l.gave(f.Name) {
				l.Given = append(l.Given, Given{Flag: f, Text: text, fromEnv: true})
			}
			continue
		case all[name] == nil && !foreign(name, value, env):
			remedy := "lameduck --help-all lists the variables"
			if near := nearest(name, slices.Sorted(maps.Keys(all))); near != "" {
				remedy = "did you mean " + near + "?"
			}
			what := errors.New("unknown variable " + shim.Quote(name))
			l.Unknown = append(l.Unknown, &shim.FlagError{Flag: name, Err: what, Remedy: remedy})
		}
		l.Env = append(l.Env, entry)
	}
}

// foreign reports whether a variable of env with Prefix is for another reader than a flag: set
// by lameduck for --on-stop, or by the kubelet for a Service called lameduck or lameduck-NAME.
// The kubelet makes variables of every Service with a cluster IP for every container, unless
// the pod's enableServiceLinks is false: for NAME, port 80 (called http) and TCP
//
//	NAME_SERVICE_HOST=10.0.0.1
//	NAME_SERVICE_PORT=80
//	NAME_SERVICE_PORT_HTTP=80
//	NAME_PORT=tcp://10.0.0.1:80
//	NAME_PORT_80_TCP=tcp://10.0.0.1:80
//	NAME_PORT_80_TCP_ADDR=10.0.0.1
func foreign(name, value string, env []string) bool {
	for _, entry := range slices.Concat(env, []string{"LAMEDUCK_SERVICE_HOST="}) {
		service, _, _ := strings.Cut(entry, "_SERVICE_HOST=")
		rest := strings.TrimPrefix(name, service+"_")
		if strings.HasPrefix(rest+"_", "PORT_") || strings.HasPrefix(rest, "SERVICE_") {
			return true
		}
	}
	return isAddress(value) || name == "LAMEDUCK_PID" || name == "LAMEDUCK_SIGNAL"
}

// isAddress reports whether a value is that of NAME_PORT or NAME_PORT_80_TCP. No flag takes
// such a value.
func isAddress(value string) bool {
	return strings.HasPrefix(value, "tcp://") || strings.HasPrefix(value, "udp://") || strings.HasPrefix(value, "sctp://")
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
