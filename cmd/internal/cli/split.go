package cli

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lameduck-init/lameduck/shim"
)

// split divides args into flags and the command. The command begins at "--", which
// stays in place, or at the first word that is neither a flag nor the value of a flag.
// The command never passes through kong, which takes quadratic time for long lists and
// replaces bytes that are not UTF-8. The flags found are marked as given.
func split(args []string, flags []flag) (own, command []string, err error) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if !isFlag(word) || word == "--" {
			return args[:i], args[i:], nil
		}
		open, err := readWord(word, flags)
		if err != nil {
			return nil, nil, err
		}
		if open != nil {
			i++
			if i == len(args) || isFlag(args[i]) {
				return nil, nil, missingValue(args[i-1:], open)
			}
		}
	}
	return args, nil, nil
}

// isFlag reports whether word is a flag or "--".
func isFlag(word string) bool { return len(word) > 1 && word[0] == '-' }

// readWord reads a word of flags. It returns the flag whose value is the next word, or nil.
func readWord(word string, flags []flag) (open *flag, err error) {
	name, isLong := strings.CutPrefix(word, "--")
	if !isLong {
		if single := singleDash(word, flags); single != "" {
			return nil, fmt.Errorf("unknown flag %s: did you mean %s?", shim.Quote(word), shim.Quote(single))
		}
		return readCluster(word[1:], flags)
	}
	name, _, attached := strings.Cut(name, "=")
	f := long(flags, name)
	switch {
	case f == nil:
		return nil, unknownFlag(word, flags)
	case attached && name == "no-"+f.name():
		return nil, fmt.Errorf("--%s takes no value: give --%[1]s alone", name)
	}
	f.given = true
	if f.hasValue && !attached {
		return f, nil
	}
	return nil, nil
}

// singleDash returns word, which begins with one dash, with two dashes if that makes it a
// flag (-delay=10 for --delay=10), else "". -help stays what it is: -h with more letters.
func singleDash(word string, flags []flag) string {
	name, _, _ := strings.Cut(word[1:], "=")
	if name == "help" || len(name) < 2 || long(flags, name) == nil {
		return ""
	}
	return "-" + word
}

// readCluster is readWord for short flags, of which several may share a hyphen.
func readCluster(cluster string, flags []flag) (open *flag, err error) {
	for len(cluster) > 0 {
		_, size := utf8.DecodeRuneInString(cluster)
		f := short(flags, cluster[:size])
		if f == nil {
			return nil, fmt.Errorf("unknown flag %s", shim.Quote("-"+cluster[:size]))
		}
		f.given = true
		cluster = cluster[size:]
		switch {
		case f.hasValue && cluster == "":
			return f, nil
		case f.hasValue && cluster[0] == '=' && f.field.Type != nil:
			return nil, fmt.Errorf("%s takes no =: give --%s%s", f.dashed(), f.name(), shim.Quote(cluster))
		case f.hasValue: // the rest of the word is the value
			return nil, nil
		}
	}
	return nil, nil
}

// unknownFlag is the error for word, a long flag that does not exist, with what was probably
// meant: "--delay 10" is often a single word in YAML.
func unknownFlag(word string, flags []flag) error {
	var names []string
	for _, f := range flags {
		names = append(names, f.names...)
	}
	name, _, _ := strings.Cut(word[len("--"):], "=")
	first, value, _ := strings.Cut(name, " ")
	meant := didYouMean(strings.TrimSuffix(first, ":"), names)
	unknown := "unknown flag " + shim.Quote("--"+name)
	switch {
	case meant == "":
		return errors.New(unknown)
	case value != "":
		return fmt.Errorf("%s: did you mean %s?", unknown, shim.Quote("--"+meant+"="+strings.TrimSpace(value)))
	}
	return fmt.Errorf("%s: did you mean --%s?", unknown, meant)
}

// missingValue is the error for the first of words, which ends with the flag f without a
// value. The second word, if any, begins with a hyphen: a value that does so has to be
// attached.
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
