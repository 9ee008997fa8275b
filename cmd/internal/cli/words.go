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
