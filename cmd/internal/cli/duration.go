package cli

import (
	"regexp"
	"strings"

	"github.com/lameduck-init/lameduck/shim"
)

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

// goUnit returns Go's unit of time for a word, or the word.
func goUnit(word string) string {
	switch strings.TrimSuffix(word, "s") {
	case "msec", "milli", "millisecond":
		return "ms"
	case "sec", "second":
		return "s"
	case "min", "minute":
		return "m"
	case "hr", "hour":
		return "h"
	}
	return word
}
