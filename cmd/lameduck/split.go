package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// splitCommand divides args into flags and the command: the command begins at "--",
// which stays in place, or at the first word that is neither a flag nor the value of
// a flag. The command and its arguments never pass through the parser, which takes
// quadratic time for long lists and replaces bytes that are not UTF-8. An unknown flag
// is left to the parser to report.
func splitCommand(args []string, flags []*kong.Flag) (own, command []string, err error) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if !isFlag(word) || word == "--" {
			return args[:i], args[i:], nil
		}
		if valueFollows(word, flags) {
			i++
			if i == len(args) || isFlag(args[i]) {
				return nil, nil, missingValue(word)
			}
		}
	}
	return args, nil, nil
}

// isFlag reports whether word is a flag, or "--".
func isFlag(word string) bool { return len(word) > 1 && word[0] == '-' }

// missingValue is the error for word, which ends with a flag that has no value. A value
// that begins with a hyphen has to be attached.
func missingValue(word string) error {
	if strings.HasPrefix(word, "--") {
		return fmt.Errorf("%s has no value: give %[1]s=VALUE", word)
	}
	flag := "-" + word[len(word)-1:]
	return fmt.Errorf("%s has no value: give %[1]s VALUE", flag)
}

// valueFollows reports whether word ends with a flag whose value is the next word.
func valueFollows(word string, flags []*kong.Flag) bool {
	if long, ok := strings.CutPrefix(word, "--"); ok {
		name, _, attached := strings.Cut(long, "=")
		return !attached && takesValue(flags, func(f *kong.Flag) bool {
			return f.Name == name || slices.Contains(f.Aliases, name)
		})
	}
	for i, short := range word[1:] { // a cluster of short flags
		if takesValue(flags, func(f *kong.Flag) bool { return f.Short == short }) {
			return i == len(word)-2 // else the rest of the word is the value
		}
	}
	return false
}

// takesValue reports whether the flag that matches has a value.
func takesValue(flags []*kong.Flag, matches func(*kong.Flag) bool) bool {
	i := slices.IndexFunc(flags, matches)
	return i >= 0 && !flags[i].IsBool() && !flags[i].IsCounter()
}
