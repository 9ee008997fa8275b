package cli

import (
	"errors"
	"fmt"
	"strings"
)

// SplitWords splits a command into words as sh(1) does: at blanks that are not quoted
// and do not follow a backslash. Nothing is expanded.
func SplitWords(text string) ([]string, error) {
	var s splitter
	for i := range len(text) { // bytes: text need not be UTF-8
		s.next(text[i])
	}
	switch {
	case s.quote != 0:
		return nil, fmt.Errorf("unclosed quote %c: close the quote", s.quote)
	case s.escaped:
		return nil, errors.New("trailing backslash: quote it, or leave it out")
	}
	s.end()
	return s.words, nil
}

// splitter splits words, a byte at a time.
type splitter struct {
	words   []string
	word    strings.Builder // the current word
	begun   bool            // even if the word is empty: ''
	quote   byte            // the open quote, or 0
	escaped bool            // the last byte was a backslash
}

// next takes one byte. In single quotes every byte is literal; in double quotes a
// backslash quotes itself, the quote, $ and `.
func (s *splitter) next(c byte) {
	switch {
	case s.escaped:
		if s.quote == '"' && strings.IndexByte("\\\"$`", c) < 0 {
			s.word.WriteByte('\\')
		}
		s.word.WriteByte(c)
		s.escaped = false
	case c == '\\' && s.quote != '\'':
		s.escaped, s.begun = true, true
	case s.quote != 0 && c == s.quote:
		s.quote = 0
	case s.quote != 0:
		s.word.WriteByte(c)
	case c == '\'' || c == '"':
		s.quote, s.begun = c, true
	case c == ' ' || c == '\t' || c == '\n':
		s.end()
	default:
		s.word.WriteByte(c)
		s.begun = true
	}
}

// end ends the current word.
func (s *splitter) end() {
	if s.begun {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.begun = false
}
