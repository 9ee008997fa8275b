package main

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// word is a word of a file, and where it stands there. What only the cluster or
// the build will know is written $(NAME) in it, as Kubernetes does.
type word struct {
	text string
	line int
}

// known reports whether text is all that there is to know.
func known(text string) bool { return !strings.Contains(text, "$(") }

// grammar is lameduck's command line. A test holds it against the real one.
type grammar struct {
	Rewrite       words `short:"r"`
	StopSignal    words
	Preset        words `short:"p"`
	Group         *bool `short:"g"`
	DropUnhandled *bool
	holdFlags
	StopSchedule              words
	KillAfter                 words
	Linger                    words
	AliveFile                 words
	Health                    words
	HealthDuring              words
	ExitCode                  words `short:"e"`
	Subreaper                 *bool `short:"s"`
	ParentDeathSignal         words
	Help                      bool `short:"h"`
	Explain, Version, HelpAll bool

	Command []string `arg:"" optional:"" passthrough:"partial"`
}

// hookGrammar is lameduck hold's.
type hookGrammar struct {
	holdFlags
	Help bool `short:"h"`
}

// holdFlags are those that both have.
type holdFlags struct {
	Delay          words `short:"d"`
	Until          words `short:"u"`
	MaxDelay       words
	GracePeriod    words
	WaitGone       words
	OnStop         words
	QuietFor       words
	MaxSilence     words
	CountPort      words
	IgnorePort     words
	IgnorePeer     words
	IgnoreProbes   *bool
	TerminationLog words
	LogLevel       words
	LogFormat      words
}

// words are the values of a flag as they were given.
type words []string

// Decode adds one, as it is.
func (w *words) Decode(ctx *kong.DecodeContext) error {
	token, err := ctx.Scan.PopValue("value")
	if err != nil {
		return &missingValue{ctx.Value.Name}
	}
	*w = append(*w, token.String())
	return nil
}

// missingValue is a flag without its value, in lameduck's words.
type missingValue struct{ flag string }

func (e *missingValue) Error() string {
	return fmt.Sprintf("--%s has no value: give --%[1]s=VALUE", e.flag)
}

// reading is what lameduck makes of its words and variables.
type reading struct {
	cfg      shim.Config
	given    map[string]given // by the flag's name
	open     bool             // something that was given is not known
	asks     bool             // it prints something, and runs nothing
	problems []problem
}

// given is a flag or its variable, as it was given last.
type given struct {
	source, value string
	line          int
}

// problem is one that lameduck itself would have with them.
type problem struct {
	line int
	rule string
	text string
}

func (r *reading) fault(line int, rule, format string, args ...any) {
	r.problems = append(r.problems, problem{line, rule, fmt.Sprintf(format, args...)})
}

// read is what a lameduck, or a lameduck hold, makes of the words after its name
// (at line) and its environment.
func read(hook bool, line int, args []word, env []variable) *reading {
	r := &reading{given: map[string]given{}}
	r.cfg.Env = []string{"KUBERNETES_SERVICE_HOST=10.0.0.1"} // only for what is assumed in a pod
	var own grammar
	var flags any = &own
	if hook {
		flags = new(hookGrammar)
	}
	k := kong.Must(flags, kong.Name("lameduck"), kong.NoDefaultHelp())
	var texts []string
	for _, a := range args {
		texts = append(texts, a.text)
	}
	_, err := k.Parse(texts)
	if missing := (*missingValue)(nil); errors.As(err, &missing) {
		err = missing // without the parser's prefix
	}
	if err != nil {
		r.fault(lineOf(regexp.MustCompile(`--?[\w-]+`).FindString(err.Error()), args, line), badFlag, "lameduck does not start: %v", err)
		r.open = true
	}
	r.asks = own.Help || own.Explain || own.Version || own.HelpAll
	r.cfg.Command = own.Command
	if len(own.Command) > 0 && own.Command[0] == "--" {
		r.cfg.Command = own.Command[1:]
	}
	twins := r.twins(env)
	for _, flag := range k.Model.Flags {
		r.set(flag, args, line, twins)
	}
	r.defaults(hook)
	return r
}

// twins are the known values of the flags' variables.
func (r *reading) twins(env []variable) map[string]word {
	twins := map[string]word{}
	names := twinNames()
	for _, v := range env {
		flag, ours := names[v.name]
		switch {
		case ours:
			twins[flag] = v.value // the last one counts
		case strings.HasPrefix(v.name, prefix) && !lent(v.name):
			r.fault(v.value.line, unknownVariable, "%s is no variable of lameduck, which warns and goes on without; %s is one", v.name, nearest(v.name, names))
		}
	}
	return twins
}

// set gives the configuration the values of a flag.
func (r *reading) set(flag *kong.Flag, args []word, line int, twins map[string]word) {
	set, ok := setters[flag.Name]
	if !ok {
		return // it only asks
	}
	source, values := "--"+flag.Name, valuesOf(flag.Target)
	at := lineOf(source, args, lineOf("-"+string(flag.Short), args, line))
	if twin := twins[flag.Name]; len(values) == 0 && twin.text != "" {
		source, values, at = twinOf(flag.Name), []string{twin.text}, twin.line
	}
	for _, value := range values {
		r.given[flag.Name] = given{source, value, at}
		if !known(value) {
			r.open = true
		} else if err := set(&r.cfg, value); err != nil && !ofBuild(err) {
			r.fault(at, badFlag, "lameduck does not start: %s=%s: %v", source, value, err)
			r.open = true
		}
	}
}

// valuesOf are the values that the command line gives a flag.
func valuesOf(target reflect.Value) []string {
	switch v := target.Interface().(type) {
	case words:
		return v
	case *bool:
		if v != nil {
			return []string{fmt.Sprint(*v)}
		}
	}
	return nil
}

// defaults are what lameduck does with what was left out.
func (r *reading) defaults(hook bool) {
	if !r.gave("until") && hook {
		r.cfg.Until = shim.Quiet
	}
	r.cfg.DelayGiven = r.gave("delay") && r.cfg.Until != shim.Elapsed
	if !r.gave("health-during") {
		r.cfg.HealthDuring = shim.HealthPass // as in Kubernetes
	}
}

// gave reports whether a flag was given, or its variable.
func (r *reading) gave(flag string) bool {
	_, ok := r.given[flag]
	return ok
}

// validate is what lameduck would say to all of it together.
func (r *reading) validate() error {
	if err := r.cfg.Validate(); err != nil && !ofBuild(err) {
		return err
	}
	return nil
}

// ofBuild knows an error that is about how this very program was built: in lint
// signals are caught as Go does it, and some cannot be.
func ofBuild(err error) bool { return strings.Contains(err.Error(), "this binary was built without") }

// lineOf is the line of the first word that is a flag, or else.
func lineOf(flag string, args []word, otherwise int) int {
	i := slices.IndexFunc(args, func(a word) bool {
		name, _, _ := strings.Cut(a.text, "=")
		return name == flag || len(flag) == 2 && flag[1] != 0 && strings.HasPrefix(a.text, flag)
	})
	if i < 0 {
		return otherwise
	}
	return args[i].line
}
