package cli

import (
	"cmp"
	"errors"
	"fmt"
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
	all := newParser(&l.Flags).Model.Flags
	l.flags = flagsOf(name, all)
	given, command, faults := read(args, l.flags, name)
	for _, g := range given {
		l.give(g)
	}
	l.readEnv(env, all)
	for _, fault := range faults {
		if fault.Remedy == "" {
			fault.Remedy = l.remedyFor(fault.Flag, all)
		}
	}
	l.Command, l.Faults = DropDashes(command), faults
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
func flagsOf(name string, all []*kong.Flag) (flags []*kong.Flag) {
	for _, f := range all {
		of := f.Tag.Get("of")
		if of == "" {
			of = commands[f.Group.Key]
		}
		if slices.Contains(strings.Fields(of), name) {
			flags = append(flags, f)
		}
	}
	return flags
}

// isFlag reports whether a word is a flag.
func isFlag(word string) bool { return len(word) > 1 && word[0] == '-' && word != "--" }

// read divides args into flags and the command, which begins at "--" ("--" included), or at
// the first word other than a flag or the value of a flag. A flag with a fault is left out. A
// subcommand runs no command: other words are faults, or the values of unknown flags.
func read(args []string, flags []*kong.Flag, name string) (given []Given, command []string, faults []*shim.FlagError) {
	for len(args) > 0 && (isFlag(args[0]) || name != "run") {
		word := args[0]
		args = args[1:]
		if !isFlag(word) {
			if word != "--" {
				faults = append(faults, faultOf(word, fmt.Sprintf("unexpected argument %q", word),
					fmt.Sprintf("leave it out, or run a program called %s with lameduck -- %[1]s", name)))
			}
			continue
		}
		list, valueFollows, fault := readWord(word, flags)
		hasValue := len(args) > 0 && args[0] != "--" && !isFlag(args[0])
		switch {
		case valueFollows && hasValue && (fault == nil || name != "run"):
			if fault == nil {
				list[len(list)-1].Text = args[0]
			}
			args = args[1:]
		case valueFollows && fault == nil:
			fault = faultOf(word, word+" needs a value", "give "+word+" VALUE")
		}
		if fault != nil {
			faults = append(faults, fault)
		} else {
			given = append(given, list...)
		}
	}
	return given, args, faults
}

// unknown returns the fault of an unknown flag, so far without a remedy.
func unknown(flag string) *shim.FlagError {
	return faultOf(flag, "unknown flag "+shim.Quote(flag), "")
}

// readWord returns the flags in a word, and whether the next word is the value of the last. Several
// short flags may share a hyphen.
func readWord(word string, flags []*kong.Flag) (list []Given, valueFollows bool, fault *shim.FlagError) {
	name, value, attached := strings.Cut(word, "=")
	if strings.HasPrefix(word, "--") {
		f := find(flags, name)
		negated := strings.HasPrefix(name, "--no-")
		switch {
		case f == nil:
			return nil, !attached, unknown(name)
		case attached && (negated || f.IsBool() && f.Tag.Type == ""):
			return nil, false, faultOf(name, name+" takes no value", "give "+name+" alone")
		case negated:
			value = "false"
		case f.IsBool() && !attached:
			value = "true"
		}
		return []Given{{Flag: f, Text: value}}, !attached && !f.IsBool(), nil
	}
	if name != "-help" && find(flags, "-"+name) != nil { // a hyphen is missing
		return nil, !attached, unknown(name)
	}
	for rest := word[1:]; rest != ""; {
		_, size := utf8.DecodeRuneInString(rest)
		f := find(flags, "-"+rest[:size])
		if f == nil {
			return nil, true, unknown("-" + rest[:size])
		}
		rest = rest[size:]
		if !f.IsBool() { // the rest of the word is the value
			return append(list, Given{Flag: f, Text: rest}), rest == "", nil
		}
		list = append(list, Given{Flag: f, Text: "true"})
	}
	return list, false, nil
}

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
	for _, f := range flags {
		if slices.Contains(names(f), name) {
			return f
		}
	}
	return nil
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
func (l *Line) remedyFor(unknown string, all []*kong.Flag) string {
	var known []string
	for _, f := range l.flags {
		known = append(known, names(f)...)
	}
	if l.name == "run" {
		known = append(known, subcommands...)
	}
	near := nearest(unknown, known)
	switch {
	case find(flagsOf("run", all), unknown) != nil: // and so not of the subcommand
		return fmt.Sprintf("lameduck itself has the flag, lameduck %s does not", l.name)
	case near != "":
		return fmt.Sprintf("did you mean %s?", near)
	case l.name == "run":
		return "flags of the command follow the command"
	}
	return ""
}

// ParseOther reads the flags of another program into grammar, a struct for kong, and returns the
// words that follow the flags. The tag "of" has the programs that have a flag. Long flags may be
// abbreviated.
func ParseOther(program string, grammar any, args []string) (rest []string, err error) {
	flags := flagsOf(program, newParser(grammar).Model.Flags)
	abbreviate(flags)
	given, rest, faults := read(args, flags, "run")
	if len(faults) > 0 {
		return nil, faults[0]
	}
	for _, g := range given {
		if wrong := g.set(); wrong != nil {
			err = cmp.Or(err, fmt.Errorf("-%c %s: %w", g.Short, g.Text, errors.Unwrap(wrong)))
		}
	}
	return rest, err
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
