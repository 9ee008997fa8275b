package main

import (
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
)

// word is a word of a file, and its line; the line of a missing word is 0. What only the
// cluster or the build knows is written $(NAME) in the text, as in Kubernetes.
type word struct {
	text string
	line int
}

// UnmarshalYAML implements [yaml.Unmarshaler]. Values that are not scalars are not known.
func (w *word) UnmarshalYAML(n *yaml.Node) error {
	w.text, w.line = n.Value, n.Line
	if n.Kind != yaml.ScalarNode {
		w.text = "$()"
	}
	return nil
}

// commandLine is words, or a text that is split into words.
type commandLine []word

// UnmarshalYAML implements [yaml.Unmarshaler].
func (l *commandLine) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return n.Decode((*[]word)(l))
	}
	words, err := cli.SplitWords(n.Value)
	*l = wordsAt(n.Line, words)
	return err
}

func (w word) Base() string { return path.Base(w.text) }

func (w word) String() string { return w.text }

// isPlain reports whether a word is no flag.
func (w word) isPlain() bool { return !strings.HasPrefix(w.text, "-") }

// wordsAt returns the words of a line.
func wordsAt(line int, texts []string) []word {
	words := make([]word, len(texts))
	for i, text := range texts {
		words[i] = word{text, line}
	}
	return words
}

// texts returns the texts of words.
func texts(words []word) (list []string) {
	for _, w := range words {
		list = append(list, w.text)
	}
	return list
}

// joined returns the texts of words, as a line.
func joined(words []word) string { return strings.Join(texts(words), " ") }

// oneLine returns a text without the ends of its lines.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
