package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// formats are the ways to print what was found.
var formats = map[string]func(finding) string{
	"text": func(f finding) string { return fmt.Sprintf("%s:%d: %s [%s]", f.File, f.Line, f.Text, f.Rule) },
	"json": func(f finding) string {
		text, _ := json.Marshal(f) // of strings and a number: it cannot fail
		return string(text)
	},
	// GitHub's workflow commands, which put a note beside the line of a change.
	"github": func(f finding) string {
		return fmt.Sprintf("::warning file=%s,line=%d,title=%s::%s", property.Replace(f.File), f.Line, f.Rule, message.Replace(f.Text))
	},
}

// What has a meaning in a workflow command.
var (
	message  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// printAll prints what was found, a line each.
func printAll(out io.Writer, format func(finding) string, found []finding) error {
	for _, f := range found {
		if _, err := fmt.Fprintln(out, format(f)); err != nil {
			return fmt.Errorf("cannot write to standard output: %w", err)
		}
	}
	return nil
}
