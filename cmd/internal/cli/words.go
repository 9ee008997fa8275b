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
	var word []byte                  // nil: none has begun
	var quote byte                   // the open quote, or 0
	text += "\n"                     // ends the last word
	for i := 0; i < len(text); i++ { // bytes: text need not be UTF-8
		c := text[i]
		switch {
		case c == '\\' && quote != '\'':
			i++
			if i == len(text)-1 {
				return nil, errors.New("trailing backslash: quote it, or leave it out")
			}
			if quote == '"' && strings.IndexByte("\\\"$`", text[i]) < 0 {
				word = append(word, c)
			}
			word = append(word, text[i])
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, word = c, append([]byte{}, word...) // a word, even if it stays empty
		case quote == 0 && strings.IndexByte(" \t\n", c) >= 0:
			if word != nil {
				words = append(words, string(word))
			}
			word = nil
		default:
			word = append(word, c)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("unclosed quote %c: close the quote", quote)
	}
	return words, nil
}

// maxTypos is the largest number of edits between a mistyped name and the one that was meant.
const maxTypos = 2

// nearest returns the candidate that name probably stands for, the one with the fewest edits, if
// those are few, or "". Case, the choice of hyphen or underscore, and hyphens in front do not count.
func nearest(name string, candidates []string) (near string) {
	bare := func(name string) string {
		return strings.TrimLeft(strings.ReplaceAll(strings.ToLower(name), "_", "-"), "-")
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
