package report

import "fmt"

// say returns a sentence with its arguments.
func say(sentence string, args ...any) string { return fmt.Sprintf(sentence, args...) }

// phrases are parts of a line, or lines.
type phrases []string

// add adds a phrase if it applies.
func (p *phrases) add(applies bool, sentence string, args ...any) {
	if applies {
		*p = append(*p, say(sentence, args...))
	}
}
