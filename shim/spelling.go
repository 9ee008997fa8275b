package shim

import "strings"

// Spelling is how flags of lameduck's are spelled where lameduck was called by another
// name and has the flags of another program: each flag's name, and the variable or the
// other program's own flag to give in its place. The zero value is for lameduck's own
// name, where flags are flags.
type Spelling map[string]string

// In returns text with the flags in it ("--until=quiet") spelled accordingly
// ("LAMEDUCK_UNTIL=quiet"). Flags of other programs stay. Texts that hold what users
// wrote are spelled before that is put in.
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
