package main

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim"
)

// word is a word of a file, and its line. What only the cluster or the build knows is
// written $(NAME) in the text, as in Kubernetes.
type word struct {
	text string
	line int
}

// known reports whether text has no $(NAME).
func known(text string) bool { return !strings.Contains(text, "$(") }

func (w word) base() string { return path.Base(w.text) }

// call is a call of lameduck.
type call struct {
	program    word
	subcommand string
	args       []word // after the subcommand
	script     bool   // a shell's script calls lameduck
	exec       bool   // the script by exec, and so for good
	unclear    bool   // some of the script's words are not known
}

// inits are the programs that lameduck replaces, by the name too.
var inits = []string{"tini", "tini-static", "docker-init", "dumb-init", "catatonit", "podman-init"}

// callIn returns the call of lameduck in a command: by the command itself, behind an init, or
// in the script of a shell. It is nil if there is none.
func callIn(words []word) *call {
	if script, ok := scriptIn(words); ok {
		return callInScript(script)
	}
	var c call
	if len(words) > 0 && slices.Contains(inits, words[0].base()) {
		words = words[max(0, slices.IndexFunc(words, func(w word) bool { return w.base() == "lameduck" })):]
	}
	if len(words) == 0 || words[0].base() != "lameduck" {
		return nil
	}
	c.program = words[0]
	c.setArgs(words[1:])
	return &c
}

func (c *call) setArgs(words []word) {
	c.args = words
	if len(words) > 0 && slices.Contains([]string{"hold", "watch", "install", "presets"}, words[0].text) {
		c.subcommand, c.args = words[0].text, words[1:]
	}
}

// scriptIn returns the script in a shell's words: that after -c.
func scriptIn(words []word) (script word, ok bool) {
	shells := []string{"sh", "bash", "dash", "ash", "zsh", "ksh"}
	if len(words) == 0 || !slices.Contains(shells, words[0].base()) {
		return word{}, false
	}
	for i, w := range words[1:] {
		switch {
		case !strings.HasPrefix(w.text, "-"):
			return word{}, false // a script file
		case !strings.HasPrefix(w.text, "--") && strings.HasSuffix(w.text, "c") && i+2 < len(words):
			return words[i+2], true
		}
	}
	return word{}, false
}

// callRE matches a call of lameduck at the beginning of a shell's command.
var callRE = regexp.MustCompile(`(?m)(?:^|[;&|({]|\b(?:if|then|else|do|(exec))\s)\s*` +
	`((?:[\w./-]*/)?lameduck)((?:[ \t]+[^\s;&|)]+)*)`)

// callInScript returns the first call in a script. Words that a shell changes are left out,
// with those behind them.
func callInScript(script word) *call {
	found := callRE.FindStringSubmatch(script.text)
	if found == nil {
		return nil
	}
	c := &call{program: word{found[2], script.line}, script: true, exec: found[1] != ""}
	var words []word
	for _, text := range strings.Fields(found[3]) {
		if strings.ContainsAny(text, "'\"`$\\<>*") {
			c.unclear = !strings.ContainsAny(text, "<>")
			break
		}
		words = append(words, word{text, script.line})
	}
	c.setArgs(words)
	return c
}

var (
	sleepRE = regexp.MustCompile(`(?m)(?:^|[;&]|\bexec\s)\s*(?:/\S*/)?sleep\s+([\w.]+)`)
	// choiceRE matches what may keep a script from a command.
	choiceRE = regexp.MustCompile(`\|\||\b(?:if|case|while|until|for|trap)\b|\[|&\s*$|[^&]&[^&]`)
)

// sleeps returns the time that a command sleeps in any case.
func sleeps(words []word) (total time.Duration) {
	text := ""
	switch script, ok := scriptIn(words); {
	case ok && !choiceRE.MatchString(script.text):
		text = script.text
	case len(words) == 2 && words[0].base() == "sleep":
		text = "sleep " + words[1].text
	}
	for _, found := range sleepRE.FindAllStringSubmatch(text, -1) {
		if length, err := shim.ParseDuration(found[1]); err == nil {
			total += length
		}
	}
	return total
}
