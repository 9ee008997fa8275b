package cli

import (
	"fmt"
	"regexp"
	"strings"
)

// checkNoShell returns an error if a command, which lameduck runs without a shell, has syntax
// of a shell outside of quotes.
func checkNoShell(text string) error {
	if found := shellSyntax(text); found != "" {
		return fmt.Errorf("no shell runs the command, so %s stays as it is: give sh -c 'COMMAND', or quote %[1]s", found)
	}
	return nil
}

// Operators and expansions of sh(1). An operator is a word, a redirection begins a word, and
// a semicolon ends a word: URLs have & and ; inside.
var (
	operators  = regexp.MustCompile(`^(&&|\|\|?|;|&|[0-9&]*[<>].*|.*;)$`)
	expansions = regexp.MustCompile("\\$([A-Za-z_][A-Za-z0-9_]*|[{(][^ ]*|[0-9@*#?$!])|`[^ ]*")
)

// shellSyntax returns the first operator or expansion of a shell in text, or "". Quoted text
// has no syntax: SplitWords keeps quoted text for the program, which may be a shell.
func shellSyntax(text string) string {
	for word := range strings.FieldsSeq(withoutQuoted(text)) {
		if operators.MatchString(word) {
			return strings.TrimLeft(word, quotedByte)
		}
		if found := expansions.FindString(word); found != "" {
			return found
		}
	}
	return ""
}

// quotedByte stands for a quoted byte. No environment or command line has a zero byte.
const quotedByte = "\x00"

// withoutQuoted returns text with quotedByte in place of every quoted byte and every byte
// after a backslash.
func withoutQuoted(text string) string {
	var out strings.Builder
	var quote byte
	escaped := false
	for i := range len(text) {
		c := text[i]
		plain := quote == 0 && !escaped && c != '\\' && c != '\'' && c != '"'
		switch {
		case escaped:
			escaped = false
		case c == '\\' && quote != '\'':
			escaped = true
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		}
		if plain {
			out.WriteByte(c)
		} else {
			out.WriteString(quotedByte)
		}
	}
	return out.String()
}
