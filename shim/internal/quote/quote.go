// Package quote makes text from outside fit to print: arguments, variables, paths,
// names of sockets and programs, words of the kernel. Such text may hold terminal
// escapes, newlines that would forge a line of the log, direction marks that reorder
// what is read (Trojan Source), and bytes that are not UTF-8.
//
// Line is applied to everything that lameduck prints, next to the output. Word and
// Shell are applied to single values, where a reader must see where a value ends.
package quote

import (
	"iter"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns text as one line of printable characters: all others, newlines and
// tabs included, are escaped as in a Go string (\n, \x1b, \u202e, \xff). A backslash
// stays as it is, so that Line changes no text twice.
func Line(text string) string {
	if isPrintable(text) {
		return text
	}
	var b strings.Builder
	for char := range characters(text) {
		if isPrintable(char) {
			b.WriteString(char)
			continue
		}
		quoted := strconv.Quote(char)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// characters yields the characters of text, and each byte that is part of none.
func characters(text string) iter.Seq[string] {
	return func(yield func(char string) bool) {
		for len(text) > 0 {
			_, size := utf8.DecodeRuneInString(text)
			if !yield(text[:size]) {
				return
			}
			text = text[size:]
		}
	}
}

// isPrintable reports whether text is UTF-8 and all of it can be printed. The ASCII
// space is the only space that can.
func isPrintable(text string) bool {
	for _, r := range text {
		if !strconv.IsPrint(r) {
			return false
		}
	}
	return utf8.ValidString(text)
}

// Word returns a value as it is where the value's end is plain to see, else in
// quotes, as a Go string.
func Word(value string) string {
	if isPrintable(value) && !strings.ContainsAny(value, " \"'`\\") {
		return value
	}
	return strconv.Quote(value)
}

// Shell returns words as they can be typed into a shell. What cannot be printed is
// in $'...', which POSIX.1-2024 has, as have bash, zsh, ksh and busybox.
func Shell(words []string) string {
	var typed []string
	for _, w := range words {
		switch {
		case !isPrintable(w):
			w = "$'" + dollarQuoted(w) + "'"
		case w == "" || strings.ContainsFunc(w, isSpecial):
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		typed = append(typed, w)
	}
	return strings.Join(typed, " ")
}

// isSpecial reports whether a character may mean something to a shell.
func isSpecial(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("_@%+=:,./-", r)
}

// dollarQuoted is what stands between $' and '. Bytes are octal, since shells differ
// in how many digits follow \x.
func dollarQuoted(word string) string {
	var b strings.Builder
	for char := range characters(word) {
		switch {
		case char == "\n":
			b.WriteString(`\n`)
		case char == "\t":
			b.WriteString(`\t`)
		case char == "'" || char == `\`:
			b.WriteString(`\` + char)
		case isPrintable(char):
			b.WriteString(char)
		default:
			for _, c := range []byte(char) {
				b.WriteString(`\` + strconv.FormatUint(uint64(c)+0o1000, 8)[1:])
			}
		}
	}
	return b.String()
}

// JSON escapes, in a value that encoding/json has encoded, what that leaves as it is
// and a terminal would not: DEL, the C1 control characters, direction marks. In
// JSON such characters occur in strings alone, so that the value stays the same.
func JSON(encoded []byte) string {
	text := string(encoded)
	if isPrintable(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch high, low := utf16.EncodeRune(r); {
		case strconv.IsPrint(r):
			b.WriteRune(r)
		case r < 0x10000:
			b.WriteString(escaped(r))
		default:
			b.WriteString(escaped(high) + escaped(low))
		}
	}
	return b.String()
}

// escaped is a unit of UTF-16 as JSON has it: \u009b.
func escaped(unit rune) string {
	return `\u` + strconv.FormatInt(int64(unit)+0x10000, 16)[1:]
}
