package cli

import (
	"errors"
	"fmt"
	"strings"
)

// SplitWords splits a command into words as sh(1) does: at blanks that are not quoted and do
// not follow a backslash. Nothing is expanded. In single quotes every byte is literal; in
// double quotes a backslash quotes itself, the quote, $ and `.
func SplitWords(text string) (words []string, err error) {
	var word strings.Builder
	var quote byte // the open quote, or 0
	begun := false // even if the word is empty: ''
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for i := 0; i < len(text); i++ { // bytes: text need not be UTF-8
		c := text[i]
		switch {
		case c == '\\' && quote != '\'':
			i++
			if i == len(text) {
				return nil, errors.New("trailing backslash: quote it, or leave it out")
			}
			if quote == '"' && strings.IndexByte("\\\"$`", text[i]) < 0 {
				word.WriteByte(c)
			}
			word.WriteByte(text[i])
			begun = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, begun = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			end()
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("unclosed quote %c: close the quote", quote)
	}
	end()
	return words, nil
}

// maxTypos is the largest number of edits between a mistyped name and the one that was meant.
const maxTypos = 2

// nearest returns the candidate that name probably stands for, the one with the fewest edits, if
// those are few, or "". Case, the choice of hyphen or underscore, and hyphens and LAMEDUCK in front do
// not count.
func nearest(name string, candidates []string) (near string) {
	bare := func(name string) string {
		name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
		return strings.TrimLeft(strings.TrimPrefix(name, "lameduck"), "-")
	}
	meant := bare(name)
	for n := range min(maxTypos, len(meant)/2) + 1 {
		for _, c := range candidates {
			if isNear(meant, bare(c), n) {
				return c
			}
		}
	}
	return ""
}

// isNear reports whether at most n edits make b of a: a byte inserted, deleted or changed.
func isNear(a, b string, n int) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if a == "" || b == "" || n == 0 {
		return len(a)+len(b) <= n
	}
	return isNear(a[1:], b, n-1) || isNear(a, b[1:], n-1) || isNear(a[1:], b[1:], n-1)
}
