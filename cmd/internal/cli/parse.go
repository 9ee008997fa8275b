package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// Line is a command line with its environment. Command is set, and Env, which lacks the
// variables of the flags.
type Line struct {
	Flags
	Unknown []Unknown // variables that belong to no flag

	name      string            // of the command: run, hold or watch
	flags     []*kong.Flag      // of the command
	variables map[string]string // the values of the flags' variables, by the flags' names
	given     []Given
	resolving bool // kong has read the words, and now reads the variables
}

// ParseRun reads the arguments of lameduck. Values are checked by Config: --help wins.
func ParseRun(args, env []string) (*Line, error) {
	l, err := parse("run", args, env)
	if err != nil {
		return l, fmt.Errorf("%w (lameduck --help-all lists the flags)", err)
	}
	return l, nil
}

// ParseHold reads the arguments of lameduck hold.
func ParseHold(args, env []string) (*Line, error) { return parseOnly("hold", args, env) }

// ParseWatch reads the arguments of lameduck watch.
func ParseWatch(args, env []string) (*Line, error) { return parseOnly("watch", args, env) }

// parseOnly is parse for a subcommand, which runs no command.
func parseOnly(name string, args, env []string) (*Line, error) {
	l, err := parse(name, args, env)
	if err == nil && len(l.Command) > 0 {
		err = fmt.Errorf("unexpected argument %q", l.Command[0])
	}
	if err != nil {
		return l, fmt.Errorf("%w (lameduck %s --help lists the flags; to run a program of that name: "+
			"lameduck -- %[2]s)", err, name)
	}
	l.Help = l.Help || l.HelpAll
	return l, nil
}

// parse reads a command line. kong's model, a large part of lameduck's start, is only made
// if there is a flag or a variable.
func parse(name string, args, env []string) (*Line, error) {
	l := &Line{name: name, variables: map[string]string{}}
	isOurs := func(entry string) bool { return strings.HasPrefix(entry, Prefix) }
	if (len(args) == 0 || !isFlag(args[0])) && !slices.ContainsFunc(env, isOurs) {
		l.Command, l.Env = DropDashes(args), env
		return l, nil
	}
	k := newParser(l, kong.Resolvers(kong.ResolverFunc(l.resolve)))
	all := k.Model.Flags
	l.flags = flagsOf(name, all)
	k.Model.Flags = l.flags
	l.readEnv(env, all)
	command, err := read(k, args)
	if unknown, ok := err.(unknownFlagError); ok {
		err = l.explain(unknown, all)
	}
	l.Command = DropDashes(command)
	return l, err
}

// read has kong read the flags, and returns the words that follow.
func read(k *kong.Kong, args []string) (rest []string, err error) {
	own, rest, err := cut(args, k.Model.Flags)
	if err == nil {
		_, err = k.Parse(own)
	}
	return rest, err
}

// newParser returns kong for the flags of a line.
func newParser(l *Line, options ...kong.Option) *kong.Kong {
	for name, r := range readers {
		options = append(options, kong.NamedMapper(name, mapper{r, l}))
	}
	return kong.Must(&l.Flags, append(options, kong.NoDefaultHelp())...)
}

// flagsOf returns the flags that a command has.
func flagsOf(name string, all []*kong.Flag) (flags []*kong.Flag) {
	for _, f := range all {
		of := cmp.Or(f.Tag.Get("of"), commands[f.Group.Key])
		if slices.Contains(strings.Fields(of), name) {
			flags = append(flags, f)
		}
	}
	return flags
}

// isFlag reports whether a word is a flag.
func isFlag(word string) bool { return len(word) > 1 && word[0] == '-' && word != "--" }

// cut divides args into flags and the command, which begins at "--" ("--" included), or at
// the first word other than a flag or the value of a flag. The command never passes through
// kong: kong takes quadratic time for long lists.
func cut(args []string, flags []*kong.Flag) (own, command []string, err error) {
	for i := 0; i < len(args); i++ {
		if !isFlag(args[i]) {
			return args[:i], args[i:], nil
		}
		valueFollows, err := readWord(args[i], flags)
		if err != nil {
			return nil, nil, err
		}
		if valueFollows {
			i++
			if i == len(args) || args[i] == "--" || isFlag(args[i]) {
				return nil, nil, fmt.Errorf("%s needs a value: give %[1]s VALUE", args[i-1])
			}
		}
	}
	return args, nil, nil
}

// readWord reports whether the next word is the value of the flag in word. Several short
// flags may share a hyphen.
func readWord(word string, flags []*kong.Flag) (valueFollows bool, err error) {
	if strings.HasPrefix(word, "--") {
		name, _, attached := strings.Cut(word, "=")
		f := find(flags, name)
		switch {
		case f == nil:
			return false, unknownFlagError(name)
		case attached && strings.HasPrefix(name, "--no-"):
			return false, fmt.Errorf("%s takes no value: give %[1]s alone", name)
		}
		return takesValue(f) && !attached, nil
	}
	for rest := word[1:]; rest != ""; {
		_, size := utf8.DecodeRuneInString(rest)
		f := find(flags, "-"+rest[:size])
		switch {
		case f == nil:
			return false, unknownFlagError("-" + rest[:size])
		case takesValue(f): // the rest of the word is the value
			return rest[size:] == "", nil
		}
		rest = rest[size:]
	}
	return false, nil
}

func takesValue(f *kong.Flag) bool { return !f.IsBool() && !f.IsCounter() }

// names returns a flag as it may be given: --delay, -d.
func names(f *kong.Flag) []string {
	list := []string{"--" + f.Name}
	if f.Short != 0 {
		list = append(list, "-"+string(f.Short))
	}
	if f.Tag.Negatable != "" {
		list = append(list, "--no-"+f.Name)
	}
	for _, alias := range f.Aliases {
		list = append(list, "--"+alias)
	}
	return list
}

// find returns the flag with a name, or nil.
func find(flags []*kong.Flag, name string) *kong.Flag {
	return first(flags, func(f *kong.Flag) bool { return slices.Contains(names(f), name) })
}

func first(flags []*kong.Flag, is func(*kong.Flag) bool) *kong.Flag {
	for _, f := range flags {
		if is(f) {
			return f
		}
	}
	return nil
}

// unknownFlagError is a flag that does not exist.
type unknownFlagError string

func (e unknownFlagError) Error() string { return "unknown flag " + shim.Quote(string(e)) }

// explain returns the error of an unknown flag with what may have been meant.
func (l *Line) explain(unknown unknownFlagError, all []*kong.Flag) error {
	var known []string
	for _, f := range l.flags {
		known = append(known, slices.DeleteFunc(names(f), func(name string) bool { return len(name) == 2 })...)
	}
	near := nearest(string(unknown), known)
	preset, err := shim.ParsePreset(strings.TrimPrefix(string(unknown), "--"))
	if err == nil && l.name == "run" {
		near = "--preset=" + preset
	}
	switch {
	case find(flagsOf("run", all), string(unknown)) != nil: // and so not of the subcommand
		return fmt.Errorf("%w: lameduck itself has the flag, lameduck %s does not", unknown, l.name)
	case near != "":
		return fmt.Errorf("%w: did you mean %s?", unknown, near)
	case l.name == "run":
		return fmt.Errorf("%w: flags of the command follow the command", unknown)
	}
	return unknown
}

// ParseOther reads the flags of another program into grammar, a struct for kong, and
// returns the words that follow the flags. Long flags may be abbreviated.
func ParseOther(grammar any, args []string) (rest []string, err error) {
	k := kong.Must(grammar, kong.NoDefaultHelp())
	abbreviate(k.Model.Flags)
	return read(k, args)
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
