package quote

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns text as one line of printable characters: all others, newlines and
// tabs included, are escaped as in a Go string (\n, \x1b, \u202e, \xff). A backslash
// is not escaped, so that Line applied twice is Line applied once.
func Line(text string) string {
	if isPrintable(text) {
		return text
	}
	quoted := strconv.Quote(text)
	unquoted := strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	return strings.ReplaceAll(unquoted, `\\`, `\`)
}

// isPrintable reports whether text is UTF-8 without unprintable characters (see
// strconv.IsPrint). The only printable space is the ASCII space.
func isPrintable(text string) bool {
	isOther := func(r rune) bool { return !strconv.IsPrint(r) }
	return utf8.ValidString(text) && !strings.ContainsFunc(text, isOther)
}

// Cut returns text if it has n bytes or fewer, else its first n bytes or fewer: no character
// of UTF-8 is cut.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// Word returns a value unchanged if a reader sees where the value ends, else quoted as
// a Go string.
func Word(value string) string {
	if value != "" && isPrintable(value) && !strings.ContainsAny(value, " \"'`\\") {
		return value
	}
	return strconv.Quote(value)
}

// Words returns values with a space between two, each as Word returns it.
func Words(values []string) string {
	var words []string
	for _, value := range values {
		words = append(words, Word(value))
	}
	return strings.Join(words, " ")
}

// JSON escapes the unprintable characters that encoding/json does not escape: DEL, the
// C1 control characters, direction marks. In JSON such characters occur only within
// strings, so the value stays the same.
func JSON(encoded []byte) string {
	text := string(encoded)
	if isPrintable(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// InWords is fmt.Sprintf with configured and derived durations in seconds, for people: "2 s",
// "2.83 s", "0.125 s".
func InWords(format string, args ...any) string {
	for i, arg := range args {
		if d, isDuration := arg.(time.Duration); isDuration {
			unit := time.Millisecond
			if d > time.Second {
				unit *= 10
			}
			args[i] = fmt.Sprintf("%v s", d.Round(unit).Seconds())
		}
	}
	return fmt.Sprintf(format, args...)
}
