package main

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
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

func (w word) base() string { return path.Base(w.text) }

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

// unknown is a word that only the shell knows.
var unknown = word{text: "$()"}

// texts returns the texts of words.
func texts(words []word) (list []string) {
	for _, w := range words {
		list = append(list, w.text)
	}
	return list
}

// command is the command of a container or a hook, or a command in a shell's script.
type command struct {
	program    word
	args       []word
	subcommand string // of lameduck, before args
	shell      string // that runs the command by a script, and stays in front; or ""
	unclear    bool   // words that the shell changes are left out, with those behind them
	always     bool   // nothing keeps the script from the command
}

func (c *command) words() []word { return append([]word{c.program}, c.args...) }

// callIn returns the first call of lameduck in the words of a container or a hook, or nil.
func callIn(words []word) *command {
	for _, c := range commandsIn(words) {
		if c.program.base() == "lameduck" {
			if len(c.args) > 0 && cli.IsSubcommand(c.args[0].text) {
				c.subcommand, c.args = c.args[0].text, c.args[1:]
			}
			return &c
		}
	}
	return nil
}

// sleepIn returns the time that the words of a hook sleep in any case, and the line.
func sleepIn(words []word) (total time.Duration, line int) {
	for _, c := range commandsIn(words) {
		if c.always && c.program.base() == "sleep" && len(c.args) > 0 {
			length, _ := shim.ParseDuration(c.args[0].text)
			total += length
			line = c.args[0].line
		}
	}
	return total, line
}

var (
	// initRE matches the programs that lameduck replaces, by the name too.
	initRE   = regexp.MustCompile(`^(.*/)?(tini|tini-static|docker-init|dumb-init|catatonit|podman-init)$`)
	shellRE  = regexp.MustCompile(`^(.*/)?(ba|da|a|z|k)?sh$`)
	scriptRE = regexp.MustCompile(`^-\w*c$`) // the flag before a script

	redirectionRE = regexp.MustCompile(`(\s\d)?[<>]+&?\s*[^\s;&|()]*`)
	separatorRE   = regexp.MustCompile(`[;&|()\n]+`)
	quotedRE      = regexp.MustCompile(`'[^']*'|"(?:\\.|[^"\\])*"`)
	prefixRE      = regexp.MustCompile(`^\s*(?:(?:\{|if|then|else|do)\s+)*(?:\w+=[^\s'"$]*\s+)*(exec\s+)?`)
	changedRE     = regexp.MustCompile("\\S*['\"`$\\\\*].*$")
	// choiceRE matches what may keep a script from a command.
	choiceRE = regexp.MustCompile(`\||\b(?:if|case|while|until|for|trap)\b|\[|&\s*$|[^&]&[^&]`)
)

// commandsIn returns the one command that words are, without an init before lameduck, or the
// commands of a shell's script.
func commandsIn(words []word) (list []command) {
	if len(words) == 0 {
		return nil
	}
	if initRE.MatchString(words[0].text) {
		words = words[max(0, slices.IndexFunc(words, func(w word) bool { return w.base() == "lameduck" })):]
	}
	script := 1 + slices.IndexFunc(words[1:], word.isPlain)
	if !shellRE.MatchString(words[0].text) || !scriptRE.MatchString(words[max(script-1, 0)].text) {
		return []command{{program: words[0], args: words[1:], always: true}}
	}
	text := quotedRE.ReplaceAllStringFunc(words[script].text, func(quoted string) string {
		return separatorRE.ReplaceAllString(quoted, "_")
	})
	text = redirectionRE.ReplaceAllString(text, " ")
	always := !choiceRE.MatchString(text)
	for _, part := range separatorRE.Split(text, -1) {
		prefix := prefixRE.FindStringSubmatch(part)
		changed := changedRE.FindString(part)
		part = strings.TrimSuffix(strings.TrimPrefix(part, prefix[0]), changed)
		plain := wordsAt(words[script].line, strings.Fields(part))
		switch {
		case len(plain) > 0:
		case changed == "":
			continue
		default:
			plain = []word{unknown}
		}
		c := command{program: plain[0], args: plain[1:], unclear: changed != "", always: always}
		if prefix[1] == "" {
			c.shell = words[0].base()
		}
		list = append(list, c)
	}
	return list
}
