package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/shim"
)

// Subcommands are the words that, as the very first word, are no program.
var Subcommands = []string{"hold", "watch", "presets", "install"}

// shellWords are words of the shell, usually without a program of the same name.
var shellWords = []string{"cd", "export", "set", "source", "ulimit", "umask", "."}

// CommandHint returns a hint about a command that was not found, or "".
func CommandHint(command []string) string {
	first := command[0]
	flag := flagMeant(first)
	words, _ := SplitWords(first)
	switch {
	case flag != "" && strings.HasPrefix(first, "--"):
		return fmt.Sprintf("give %s before the --, which ends the flags", shim.Quote(flag))
	case flag != "":
		return fmt.Sprintf("did you mean %s?", shim.Quote(flag))
	case slices.Contains(Subcommands, first):
		return fmt.Sprintf("for the subcommand, give %s as the first word, before any flag", first)
	case slices.Contains([]string{"help", "version", "explain"}, first):
		return fmt.Sprintf("did you mean lameduck --%s?", first)
	case slices.Contains([]string{"exec", "run", "start"}, first) && len(command) > 1:
		return fmt.Sprintf("leave %s out: lameduck runs the program that follows the flags", first)
	case slices.Contains(shellWords, first):
		return fmt.Sprintf("%s is a word of the shell: give sh -c '%[1]s ...; exec PROGRAM'", first)
	case isDuration(first):
		return fmt.Sprintf("did you mean --grace-period=%s or --delay=%[1]s?", first)
	case len(words) > 1:
		return fmt.Sprintf("did you mean several words, %s?", execForm(words))
	}
	if near, typos := fewestEdits(first, Subcommands[1:]); typos == 1 { // hold is near to too many words
		return fmt.Sprintf("did you mean lameduck %s?", near)
	}
	return ""
}

// isDuration reports whether a word is a duration. As the first word of a command, the word
// probably followed a flag without a value, such as -g.
func isDuration(word string) bool {
	_, err := shim.ParseDuration(word)
	return err == nil
}

// execForm returns words as a list in a Dockerfile or a manifest.
func execForm(words []string) string {
	var quoted []string
	for _, word := range words {
		quoted = append(quoted, fmt.Sprintf("%q", word))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// flagMeant returns the flag that the first word of a command probably stands for, or "": the
// word is a flag without hyphens, or with the dashes of a word processor, or a variable.
func flagMeant(word string) string {
	name, value, attached := strings.Cut(word, "=")
	bare := strings.TrimLeft(name, "-\u2010\u2011\u2012\u2013\u2014\u2212")
	flags := flagsOf(new(Run))
	f := long(flags, bare)
	if v := variable(flags, bare); v != nil && attached {
		f, bare = v, v.name()
	}
	switch {
	case f == nil || bare == name && !attached: // a program called group, or health
		return ""
	case attached:
		return "--" + bare + "=" + value
	}
	return "--" + bare
}
