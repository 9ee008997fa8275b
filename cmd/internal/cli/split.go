package cli

import (
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
		valueFollows, err := readWord(word, flags)
		if err != nil {
			return nil, nil, err
		}
		if valueFollows {
			i++
			if i == len(args) || isFlag(args[i]) {
				return nil, nil, missingValue(word)
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
		return readCluster(word[1:], flags)
	}
	name, _, attached := strings.Cut(name, "=")
	f := long(flags, name)
	switch {
	case f == nil:
		return false, unknownFlag(name, flags)
	case attached && name == "no-"+f.name():
		return false, fmt.Errorf("--%s takes no value: give --%[1]s alone", name)
	}
	f.given = true
	return f.hasValue && !attached, nil
}

// readCluster is readWord for short flags, of which several may share a hyphen.
func readCluster(cluster string, flags []flag) (valueFollows bool, err error) {
	for len(cluster) > 0 {
		_, size := utf8.DecodeRuneInString(cluster)
		f := short(flags, cluster[:size])
		if f == nil {
			return false, fmt.Errorf("unknown flag %s", shim.Quote("-"+cluster[:size]))
		}
		f.given = true
		cluster = cluster[size:]
		if f.hasValue { // the rest of the word is the value
			return cluster == "", nil
		}
	}
	return false, nil
}

func unknownFlag(name string, flags []flag) error {
	var names []string
	for _, f := range flags {
		names = append(names, f.names...)
	}
	return fmt.Errorf("unknown flag %s%s", shim.Quote("--"+name), didYouMean(name, names))
}

// missingValue is the error for word, which ends with a flag that has no value. A value
// that begins with a hyphen has to be attached.
func missingValue(word string) error {
	if strings.HasPrefix(word, "--") {
		return fmt.Errorf("%s needs a value: give %[1]s=VALUE", word)
	}
	return fmt.Errorf("%s needs a value: give %[1]s VALUE", "-"+word[len(word)-1:])
}
