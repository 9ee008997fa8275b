package report

import "strings"

// Spelling maps the names of lameduck's flags to what users have to give instead where
// lameduck was called by the name of another program: an environment variable, or that
// program's own flag. With the zero value flags are spelled as flags.
type Spelling map[string]string

// In returns text with the flags in text ("--until=quiet") spelled as users have to give
// them ("LAMEDUCK_UNTIL=quiet"). Flags of other programs stay. Only text of lameduck's own
// may be passed: callers insert values from users afterwards.
func (s Spelling) In(text string) string {
	if len(s) == 0 {
		return text
	}
	var spelled strings.Builder
	for {
		before, rest, found := strings.Cut(text, "--")
		spelled.WriteString(before)
		if !found {
			return spelled.String()
		}
		name := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz-"))]
		text = rest[len(name):]
		other, known := s[name]
		switch {
		case !known:
			other = "--" + name
		case strings.HasPrefix(other, "-"): // a short flag, whose value is the next word
			if value, given := strings.CutPrefix(text, "="); given {
				text = " " + value
			}
		}
		spelled.WriteString(other)
	}
}
