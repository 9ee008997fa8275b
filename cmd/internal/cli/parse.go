package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// Line is what Parse has read, apart from the values.
type Line struct {
	Command []string  // the program and its arguments
	Env     []string  // the environment without the variables of flags
	Unknown []Unknown // variables that belong to no flag

	flags []flag
	vars  *envFlags
}

// ParseRun reads the arguments of lameduck. Values are checked by Config: --help wins.
func ParseRun(args, env []string) (*Run, error) {
	var r Run
	command, err := r.parse(&r, args, env, nil)
	if unknown := (unknownFlagError{}); errors.As(err, &unknown) && unknown.meant == "" {
		err = fmt.Errorf("%w: flags of the command follow the command", err)
	}
	if err != nil {
		return &r, fmt.Errorf("%w (lameduck --help-all lists the flags)", err)
	}
	r.Command = DropDashes(command)
	return &r, nil
}

// ParseHold reads the arguments of lameduck hold. --help-all sets Help as well.
func ParseHold(args, env []string) (*HoldOnly, error) {
	var h HoldOnly
	err := h.parseOnly(&h, "hold", args, env)
	h.Help.Value = h.Help.Value || h.HelpAll.Value
	return &h, err
}

// ParseWatch reads the arguments of lameduck watch. --help-all sets Help as well.
func ParseWatch(args, env []string) (*Watch, error) {
	var w Watch
	err := w.parseOnly(&w, "watch", args, env)
	w.Help.Value = w.Help.Value || w.HelpAll.Value
	return &w, err
}

// parseOnly is parse for a subcommand, which runs no command.
func (l *Line) parseOnly(grammar any, name string, args, env []string) error {
	command, err := l.parse(grammar, args, env, flagsOf(new(Run)))
	err = lacking(err, name)
	if words := DropDashes(command); err == nil && len(words) > 0 {
		err = unexpectedArgument(words[0])
	}
	if err != nil {
		return fmt.Errorf("%w (lameduck %s --help lists the flags; to run a program of that name: lameduck -- %[2]s)", err, name)
	}
	return nil
}

// unexpectedArgument is the error for a word that is neither a flag nor the value of a flag.
func unexpectedArgument(word string) error {
	return fmt.Errorf("unexpected argument %s", quoteWord(word))
}

// quoteWord is shim.Quote, with quotes around an empty word too.
func quoteWord(word string) string {
	if word == "" {
		return `""`
	}
	return shim.Quote(word)
}

// lacking returns err, with a hint if a subcommand has no flag of a name that lameduck
// itself has.
func lacking(err error, subcommand string) error {
	if unknown := (unknownFlagError{}); errors.As(err, &unknown) && isFlagOfRun(unknown.flag) {
		return fmt.Errorf("unknown flag %s: lameduck itself has the flag, lameduck %s does not", shim.Quote(unknown.flag), subcommand)
	}
	return err
}

// isFlagOfRun reports whether lameduck itself has a flag, as typed.
func isFlagOfRun(typed string) bool {
	name, isLong := strings.CutPrefix(typed, "--")
	flags := flagsOf(new(Run))
	if isLong {
		return long(flags, name) != nil
	}
	return short(flags, strings.TrimPrefix(typed, "-")) != nil
}

// parse fills grammar, of which l is a part, and returns the command. The variables of
// foreign flags stay in the environment.
func (l *Line) parse(grammar any, args, env []string, foreign []flag) (command []string, err error) {
	l.flags = flagsOf(grammar)
	l.vars = readEnv(env, l.flags, foreign)
	l.Env, l.Unknown = l.vars.rest, l.vars.unknown
	own, command, err := split(args, l.flags)
	if err != nil {
		return nil, err
	}
	for name, value := range l.vars.values {
		if value != "" {
			variable(l.flags, name).given = true
		}
	}
	return command, l.readFlags(own)
}

// readFlags has kong read the flags and variables that were given, if any.
func (l *Line) readFlags(args []string) error {
	var given []*flag
	for i := range l.flags {
		if l.flags[i].given {
			given = append(given, &l.flags[i])
		}
	}
	if len(given) == 0 {
		return nil
	}
	grammar := part(given)
	k, err := newParser(grammar.Interface(), kong.Resolvers(l.vars))
	if err != nil {
		return err
	}
	for _, f := range k.Model.Flags {
		f.Tag.Envs = nil // kong shall not read the process's environment: envFlags.Resolve reads env
	}
	_, err = k.Parse(args)
	for i, f := range given {
		f.value.Set(grammar.Elem().Field(i))
	}
	return err
}

func newParser(grammar any, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(grammar, append(options, kong.Name("lameduck"), kong.NoDefaultHelp())...)
}

// ParseOther reads the flags of another program into grammar, a struct for kong, and
// returns the words that follow the flags. Long flags may be abbreviated.
func ParseOther(grammar any, args []string) (rest []string, err error) {
	k, err := newParser(grammar)
	if err != nil {
		return nil, err
	}
	abbreviate(k.Model.Flags)
	own, rest, err := split(args, flagsIn(k.Model))
	if err != nil {
		return nil, inOther(err)
	}
	_, err = k.Parse(own)
	return rest, err
}

// inOther returns an error about a flag as another program has it: lameduck's own flags are
// variables there, and no other long flag is suggested, since few inits have any.
func inOther(err error) error {
	var unknown unknownFlagError
	if !errors.As(err, &unknown) {
		return err
	}
	name, isLong := strings.CutPrefix(unknown.flag, "--")
	if f := long(flagsOf(new(Run)), name); isLong && f != nil && f.env != "" {
		return fmt.Errorf("unknown flag %s: give %s", unknown.flag, f.env)
	}
	return unknownFlagError{flag: unknown.flag}
}

// abbreviate lets a long flag be cut short to a unique beginning of at least two letters,
// as getopt_long(3) does.
func abbreviate(flags []*kong.Flag) {
	for _, f := range flags {
		for n := 2; n < len(f.Name); n++ {
			begins := func(other *kong.Flag) bool { return other != f && strings.HasPrefix(other.Name, f.Name[:n]) }
			if !slices.ContainsFunc(flags, begins) {
				f.Aliases = append(f.Aliases, f.Name[:n])
			}
		}
	}
}

// DropDashes returns a command without the "--" before it.
func DropDashes(command []string) []string {
	if len(command) > 0 && command[0] == "--" {
		return command[1:]
	}
	return command
}
