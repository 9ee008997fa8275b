package cli

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lameduck-init/lameduck/shim"
)

// split divides args into flags and the command. The command begins at "--" ("--"
// included), or at the first word other than a flag or the value of a flag. The command
// never passes through kong: kong takes quadratic time for long lists and replaces bytes
// that are not UTF-8. The flags found are marked as given.
func split(args []string, flags []flag) (own, command []string, err error) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if !isFlag(word) || word == "--" {
			return args[:i], args[i:], nil
		}
		valueFollows, err := readWord(word, flags)
		if err != nil {
			return nil, nil, err
		}
		if valueFollows {
			i++
			if i == len(args) || isFlag(args[i]) {
				return nil, nil, missingValue(args[i-1:], lastFlag(word, flags))
			}
		}
	}
	return args, nil, nil
}

// isFlag reports whether word is a flag or "--".
func isFlag(word string) bool { return len(word) > 1 && word[0] == '-' }

// readWord reports whether the value of the flag in word is the next word.
func readWord(word string, flags []flag) (valueFollows bool, err error) {
	name, isLong := strings.CutPrefix(word, "--")
	if !isLong {
		if single := singleDash(word, flags); single != "" {
			return false, unknownFlagError{word, shim.Quote(single)}
		}
		return readCluster(word[1:], flags)
	}
	name, _, attached := strings.Cut(name, "=")
	f := long(flags, name)
	switch {
	case f == nil:
		return false, unknownFlag(word, flags)
	case attached && name == "no-"+f.name():
		return false, fmt.Errorf("--%s takes no value: give --%[1]s alone", name)
	}
	f.given = true
	return f.hasValue && !attached, nil
}

// singleDash returns a word that begins with a single dash with two dashes, if the result
// is a flag (--delay=10 for -delay=10), else "". -help stays -h with more letters.
func singleDash(word string, flags []flag) string {
	name, _, _ := strings.Cut(word[1:], "=")
	if name == "help" || len(name) < 2 || long(flags, name) == nil {
		return ""
	}
	return "-" + word
}

// readCluster is readWord for short flags, of which several may share a hyphen.
func readCluster(cluster string, flags []flag) (valueFollows bool, err error) {
	for len(cluster) > 0 {
		_, size := utf8.DecodeRuneInString(cluster)
		f := short(flags, cluster[:size])
		if f == nil {
			return false, unknown("-"+cluster[:size], equivalent(cluster[:size]), flags)
		}
		f.given = true
		cluster = cluster[size:]
		switch {
		case strings.HasPrefix(cluster, "=") && f.field.Type != nil:
			return false, fmt.Errorf("%s takes no =: give --%s%s", f.dashed(), f.name(), shim.Quote(cluster))
		case f.hasValue: // the rest of the word is the value
			return cluster == "", nil
		}
	}
	return false, nil
}

// lastFlag returns the flag at the end of a word of valid flags without an attached value.
func lastFlag(word string, flags []flag) *flag {
	if name, isLong := strings.CutPrefix(word, "--"); isLong {
		return long(flags, name)
	}
	_, size := utf8.DecodeLastRuneInString(word)
	return short(flags, word[len(word)-size:])
}

// equivalent returns the flag of lameduck that people mean by a flag of another program, or
// by a word from lameduck's pages, or "".
func equivalent(name string) string {
	switch name {
	case "quiet", "settled", "drained":
		return "--until=" + name
	case "drain":
		return "--until=drained"
	case "timeout", "stop-timeout", "time":
		return "--grace-period"
	case "sleep", "wait":
		return "--delay"
	case "verbose", "v":
		return "--log-level=info"
	case "debug":
		return "--log-level=debug"
	case "json":
		return "--log-format=json"
	case "V":
		return "--version"
	}
	return ""
}

// unknownFlagError is the error for a flag that does not exist, with the probable intention.
type unknownFlagError struct{ flag, meant string }

func (e unknownFlagError) Error() string {
	if e.meant == "" {
		return "unknown flag " + shim.Quote(e.flag)
	}
	return fmt.Sprintf("unknown flag %s: did you mean %s?", shim.Quote(e.flag), e.meant)
}

// unknown returns an unknownFlagError. meant is left out if flags lack the flag in meant.
func unknown(given, meant string, flags []flag) error {
	name, _, _ := strings.Cut(strings.TrimPrefix(meant, "--"), "=")
	if long(flags, name) == nil {
		meant = ""
	}
	return unknownFlagError{given, meant}
}

// unknownFlag is the error for word, a long flag that does not exist, with the probable
// intention: "--delay 10" is often a single word in YAML.
func unknownFlag(word string, flags []flag) error {
	var names []string
	for _, f := range flags {
		names = append(names, f.names...)
	}
	name, _, attached := strings.Cut(word[len("--"):], "=")
	first, value, _ := strings.Cut(strings.TrimSuffix(name, ":"), " ")
	positive, negated := strings.CutPrefix(first, "no-")
	meant := didYouMean(first, names)
	switch other := equivalent(first); {
	case slices.Contains(Subcommands, name):
		return unknownFlagError{"--" + name, "lameduck " + name}
	case other != "" && !(attached && strings.Contains(other, "=")):
		return unknown("--"+name, other, flags)
	case meant == "":
		return unknownFlagError{"--" + name, ""}
	case value != "":
		return unknownFlagError{"--" + name, shim.Quote("--" + meant + "=" + strings.TrimSpace(value))}
	case negated && long(flags, positive) != nil && !long(flags, positive).hasValue:
		return unknownFlagError{"--" + name, "--" + positive + "=false"}
	}
	return unknownFlagError{"--" + name, "--" + meant}
}

// missingValue is the error for the first of words, which ends with the flag f without a
// value. The second word, if any, begins with a hyphen: such a value has to be attached.
func missingValue(words []string, f *flag) error {
	if len(words) > 1 && f.field.Type != nil && isNegative(words[1]) {
		if err := f.valueError(words[1]); err != nil {
			return fmt.Errorf("--%s=%s: %w", f.name(), shim.Quote(words[1]), err)
		}
		return fmt.Errorf("--%s needs a value: give --%[1]s=%s", f.name(), shim.Quote(words[1]))
	}
	if strings.HasPrefix(words[0], "--") {
		return fmt.Errorf("%s needs a value: give %[1]s=VALUE", words[0])
	}
	return fmt.Errorf("%s needs a value: give %[1]s VALUE", f.dashed())
}

// isNegative reports whether a word begins with a number below zero.
func isNegative(word string) bool {
	return len(word) > 1 && strings.IndexByte(".0123456789", word[1]) >= 0
}
