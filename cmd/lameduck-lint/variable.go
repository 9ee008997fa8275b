package main

import (
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
)

// variable is an environment variable in a file.
type variable struct {
	name  string
	value word
}

// last returns the last variable of a name, or nil.
func last(env []variable, name string) *variable {
	for i := len(env) - 1; i >= 0; i-- {
		if env[i].name == name {
			return &env[i]
		}
	}
	return nil
}

// reportPrefixes reports variables of lameduck with a mistyped prefix, of which lameduck itself
// cannot warn.
func (c *container) reportPrefixes() {
	for _, v := range c.env {
		if right := rightName(v.name); right != "" {
			c.report(v.value.line, unknownVariable, "unknown variable %s, which lameduck does not read: did you mean %s?", v.name, right)
		}
	}
}

// maxPrefixTypos is how many edits apart from LAMEDUCK a mistyped prefix may be.
const maxPrefixTypos = 2

// rightName returns the variable of lameduck that a name with a mistyped prefix stands for, or "".
func rightName(name string) string {
	if strings.HasPrefix(name, cli.Prefix) {
		return ""
	}
	for i, c := range name {
		if c != '_' {
			continue
		}
		prefix := strings.ToUpper(strings.ReplaceAll(name[:i], "_", "")) + "_"
		right := cli.Prefix + strings.ToUpper(name[i+1:])
		if levenshtein.Distance(prefix, cli.Prefix, nil) <= maxPrefixTypos && isVariable(right) {
			return right
		}
	}
	return ""
}

// isVariable reports whether a flag of lameduck has the variable.
func isVariable(name string) bool {
	line, _ := cli.ParseRun(nil, []string{name + "=x"})
	return slices.ContainsFunc(line.Given(), func(g cli.Given) bool { return g.Source == name })
}
