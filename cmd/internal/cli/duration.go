package cli

import (
	"regexp"
	"strings"

	"github.com/lameduck-init/lameduck/shim"
)

// units are the words for units of time that people write, by Go's units.
var units = map[string][]string{
	"ms": {"ms", "msec", "msecs", "millis", "millisecond", "milliseconds"},
	"s":  {"s", "sec", "secs", "second", "seconds"},
	"m":  {"m", "min", "mins", "minute", "minutes"},
	"h":  {"h", "hr", "hrs", "hour", "hours"},
}

// plainDuration returns a duration in other words ("5min", "1 h 30 min", "10S", "10,") as Go
// writes it ("5m", "1h30m", "10s", "10"), or "" if the words are unclear.
func plainDuration(text string) string {
	parts := regexp.MustCompile(`^(?:[0-9.]+ *[a-z]+ *)+$|^[0-9.]+$`)
	part := regexp.MustCompile(`([0-9.]+) *([a-z]*)`)
	lower := strings.ToLower(strings.TrimRight(strings.TrimSpace(text), ",;"))
	if !parts.MatchString(lower) {
		return ""
	}
	plain := ""
	for _, m := range part.FindAllStringSubmatch(lower, -1) {
		plain += m[1] + goUnit(m[2])
	}
	if _, err := shim.ParseDuration(plain); err != nil || plain == text {
		return ""
	}
	return plain
}

// goUnit returns Go's unit for a word, or the word.
func goUnit(word string) string {
	for unit, words := range units {
		for _, w := range words {
			if w == word {
				return unit
			}
		}
	}
	return word
}
