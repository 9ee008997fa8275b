package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// Parse reads the arguments of a command: run (lameduck itself), hold or watch. Values are checked by
// Config: --help wins. An error is the first fault, with the command that lists the flags. kong's
// model, a large part of lameduck's start, is only made if there is a flag or a variable.
func Parse(name string, args, env []string) (*Line, error) {
	l := &Line{name: name}
	isOurs := func(entry string) bool { return strings.HasPrefix(entry, Prefix) }
	if (len(args) == 0 || !isFlag(args[0]) && name == "run") && !slices.ContainsFunc(env, isOurs) {
		l.Command, l.Env = DropDashes(args), env
		return l, nil
	}
	l.all = newParser(&l.Flags).Model.Flags
	l.named = byName(flagsOf(name, l.all))
	l.Command = DropDashes(l.read(args))
	l.readEnv(env)
	l.set()
	l.Help = l.Help || l.HelpAll
	if len(l.Faults) == 0 {
		return l, nil
	}
	help := name + " --help"
	if name == "run" {
		help = "--help-all"
	}
	return l, fmt.Errorf("%w (lameduck %s lists the flags)", l.Faults[0], help)
}

// newParser returns kong for a struct of flags: its grammar, and its help. What a word is, read decides.
func newParser(flags any, options ...kong.Option) *kong.Kong {
	for name, t := range types() {
		options = append(options, kong.NamedMapper(name, t))
	}
	return kong.Must(flags, append(options, kong.NoDefaultHelp())...)
}

// flagsOf returns the flags that a command has.
func flagsOf(name string, all []*kong.Flag) []*kong.Flag {
	return slices.DeleteFunc(slices.Clone(all), func(f *kong.Flag) bool {
		of := cmp.Or(f.Tag.Get("of"), commands[f.Tag.Group], "run")
		return !slices.Contains(strings.Fields(of), name)
	})
}

// isFlag reports whether a word is a flag.
func isFlag(word string) bool { return len(word) > 1 && word[0] == '-' && word != "--" }

// read notes the flags that args begin with, and returns the command, which begins at "--" ("--"
// included), or at the first word other than a flag or the value of a flag. A subcommand runs no
// command: other words are faults, or the values of unknown flags.
func (l *Line) read(args []string) (command []string) {
	for len(args) > 0 {
		word := args[0]
		switch {
		case isFlag(word):
			args = l.readFlag(word, args[1:])
			continue
		case !IsSubcommand(l.name):
			return args
		case word != "--":
			l.refuse(word, fmt.Sprintf("unexpected argument %q", word),
				fmt.Sprintf("leave it out, or run a program called %s with lameduck -- %[1]s", l.name))
		}
		args = args[1:]
	}
	return nil
}

// readFlag notes a flag, or several short ones that share a hyphen. The value may be the next word.
// readFlag returns what follows. A word with a fault is left out.
func (l *Line) readFlag(word string, next []string) (rest []string) {
	var switches []Given
	name, value, attached := strings.Cut(word, "=")
	f := l.named[name]
	isLong := strings.HasPrefix(word, "--") || l.named["-"+name] != nil && name != "-help" // a hyphen is missing
	for letters := word[1:]; !isLong; letters = value {
		_, size := utf8.DecodeRuneInString(letters)
		name, value = "-"+letters[:size], letters[size:]
		f, attached = l.named[name], value != ""
		if f == nil || !f.IsBool() || !attached {
			break
		}
		switches = append(switches, Given{Flag: f, Text: "true"})
	}
	isNegated := strings.HasPrefix(name, "--no-")
	hasNext := len(next) > 0 && next[0] != "--" && !isFlag(next[0])
	switch {
	case f == nil:
		l.refuse(name, "unknown flag "+shim.Quote(name), l.remedyFor(name))
		if !attached && hasNext && IsSubcommand(l.name) {
			return next[1:]
		}
		return next
	case attached && (isNegated || f.IsBool() && f.Tag.Type == ""):
		l.refuse(name, name+" takes no value", "give "+name+" alone")
		return next
	case isNegated:
		value = "false"
	case attached:
	case f.IsBool():
		value = "true"
	case hasNext:
		value, next = next[0], next[1:]
	default:
		l.refuse(word, word+" needs a value", "give "+word+" VALUE")
		return next
	}
	l.Given = append(append(l.Given, switches...), Given{Flag: f, Text: value})
	return next
}

// byName returns flags by their names: --delay, -d, LAMEDUCK_DELAY.
func byName(flags []*kong.Flag) map[string]*kong.Flag {
	named := map[string]*kong.Flag{}
	for _, f := range flags {
		named["--"+f.Name] = f
		named[Variable(f)] = f
		if f.Short != 0 {
			named["-"+string(f.Short)] = f
		}
		if f.Tag.Negatable != "" {
			named["--no-"+f.Name] = f
		}
	}
	return named
}

// subcommands are words with a meaning of their own at the beginning of a line.
var subcommands = []string{"hold", "watch", "install", "presets"}

// Meant returns the subcommand or the flag that a word in the place of a subcommand probably stands
// for, or "".
func Meant(word string) string {
	return nearest(word, append([]string{"--help", "--version", "--explain"}, subcommands...))
}

// IsSubcommand reports whether a word is the name of a subcommand.
func IsSubcommand(word string) bool { return slices.Contains(subcommands, word) }

// remedyFor returns what may have been meant by an unknown flag.
func (l *Line) remedyFor(unknown string) string {
	known := slices.Sorted(maps.Keys(l.named))
	if l.name == "run" {
		known = append(known, subcommands...)
	}
	near := nearest(unknown, known)
	switch {
	case l.all == nil: // another program's
	case byName(flagsOf("run", l.all))[unknown] != nil: // and so not of the subcommand
		return fmt.Sprintf("lameduck itself has the flag, lameduck %s does not", l.name)
	case near != "":
		return fmt.Sprintf("did you mean %s?", near)
	case l.name == "run":
		return "flags of the command follow the command"
	}
	return ""
}

// ParseOther reads the flags of another program into grammar, a struct for kong, and returns the
// words that follow the flags. The tag "of" has the programs that have a flag. As with getopt_long(3), a
// long flag may be cut short to a unique beginning, here of at least two letters.
func ParseOther(program, usage string, grammar any, args []string) (rest []string, err error) {
	flags := flagsOf(program, newParser(grammar).Model.Flags)
	l := &Line{name: program, named: byName(flags)}
	for _, f := range flags {
		for n := 2; n < len(f.Name); n++ {
			short := "--" + f.Name[:n]
			_, isAmbiguous := l.named[short]
			l.named[short] = f
			if isAmbiguous {
				l.named[short] = nil
			}
		}
	}
	rest = l.read(args)
	if len(l.Faults) > 0 {
		return nil, fmt.Errorf("%w (%s; lameduck's own flags are variables here, LAMEDUCK_DELAY for --delay)", l.Faults[0], usage)
	}
	l.set()
	for _, g := range l.Given {
		err = cmp.Or(err, g.Err)
	}
	return rest, err
}

// DropDashes returns a command without the "--" before it.
func DropDashes(command []string) []string {
	if len(command) > 0 && command[0] == "--" {
		return command[1:]
	}
	return command
}
