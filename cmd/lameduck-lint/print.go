package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// formats are the ways to print a finding.
var formats = map[string]func(finding) string{
	"text": func(f finding) string { return fmt.Sprintf("%s:%d: %s [%s]", f.File, f.Line, f.Text, f.Rule) },
	"json": func(f finding) string {
		text, _ := json.Marshal(f) // cannot fail: strings and a number
		return string(text)
	},
	// GitHub's workflow commands, which annotate the lines of a change.
	"github": func(f finding) string {
		return fmt.Sprintf("::warning file=%s,line=%d,title=%s::%s",
			property.Replace(f.File), f.Line, f.Rule, message.Replace(f.Text))
	},
}

// Escapes in workflow commands.
var (
	message  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// printAll prints findings, a line each.
func printAll(out io.Writer, format func(finding) string, found []finding) error {
	for _, f := range found {
		if _, err := fmt.Fprintln(out, format(f)); err != nil {
			return fmt.Errorf("cannot write to standard output: %w", err)
		}
	}
	return nil
}
