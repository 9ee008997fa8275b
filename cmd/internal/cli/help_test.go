package cli

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim"
)

// found returns the last group of each match of re, sorted and without duplicates.
func found(re, text string) []string {
	set := map[string]bool{}
	for _, m := range regexp.MustCompile(re).FindAllStringSubmatch(text, -1) {
		set[m[len(m)-1]] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// helpOfAll returns the answers to --help-all, by the command.
func helpOfAll() map[string]string {
	all := map[string]string{"run": new(Line).HelpAllText()}
	for _, name := range []string{"hold", "watch"} {
		all[name] = (&Line{name: name}).HelpText()
	}
	return all
}

// TestHelp: --help-all has all flags and variables of the command, and no others, each with a
// text.
func TestHelp(t *testing.T) {
	for command, help := range helpOfAll() {
		var names, variables []string
		for name, f := range modelOf(t, command) {
			names = append(names, name)
			if v := Variable(f); v != "" {
				variables = append(variables, v)
			}
			if textOf(name) == "" || !f.IsBool() && f.PlaceHolder == "" {
				t.Errorf("--%s has no text or no placeholder", name)
			}
		}
		slices.Sort(names)
		slices.Sort(variables)
		if got := found(`(?m)^ {2,6}(?:-\w, )?--(?:\[no-\])?([a-z-]+)`, help); !slices.Equal(got, names) {
			t.Errorf("%s --help-all has the flags\n%v\nthe grammar\n%v", command, got, names)
		}
		if got := found(`\(\$(LAMEDUCK_[A-Z_]+)\)`, help); !slices.Equal(got, variables) {
			t.Errorf("%s --help-all has the variables\n%v\nthe grammar\n%v", command, got, variables)
		}
	}
	if n := strings.Count(texts, "\n"); n != len(modelOf(t, "run"))+1 { // and --json
		t.Errorf("help.txt has %d texts", n)
	}
}

// TestMessagesSpellFlags: where a message names a flag with its variable, both exist and belong
// together.
func TestMessagesSpellFlags(t *testing.T) {
	flags := modelOf(t, "run")
	spelled := 0
	for _, dir := range []string{".", "../../lameduck", "../../../shim", "../../../shim/internal/report"} {
		files, _ := filepath.Glob(dir + "/*.go")
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source := regexp.MustCompile(`"\s*\+\s*"`).ReplaceAllString(string(text), "")
			for _, m := range regexp.MustCompile(`--([a-z-]+)(?:=[^ "]*)? \((LAMEDUCK_[A-Z_]+)\)`).FindAllStringSubmatch(source, -1) {
				spelled++
				if f := flags[m[1]]; f == nil || Variable(f) != m[2] {
					t.Errorf("%s: %s", file, m[0])
				}
			}
		}
	}
	if spelled < 30 {
		t.Errorf("only %d flags with their variables", spelled)
	}
}

// TestHelpFits: --help fits on one screen of 80 columns and 24 lines.
func TestHelpFits(t *testing.T) {
	short := new(Line).HelpText()
	if n := strings.Count(short, "\n"); n > 24 {
		t.Errorf("--help has %d lines", n)
	}
	for _, text := range append(slices.Collect(maps.Values(helpOfAll())), short) {
		if !strings.HasSuffix(text, "\n") || strings.HasPrefix(text, "\n") || strings.Contains(text, "\n\n\n") {
			t.Errorf("odd empty lines, or no newline at the end:\n%s", text)
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if len(line) > helpWidth || line != strings.TrimRight(line, " \t") || strings.Contains(line, "\t") {
				t.Errorf("too long, or with odd blanks: %q", line)
			}
		}
	}
}

// TestHelpExamples: the examples in the help are valid, without a warning in Kubernetes.
func TestHelpExamples(t *testing.T) {
	_, text, _ := strings.Cut(new(Line).HelpAllText(), "\nExamples:\n")
	examples := found(`(?m)^ +lameduck (.*)$`, text)
	if len(examples) < 10 {
		t.Fatalf("found only %q", examples)
	}
	for _, args := range examples {
		cfg, err := configOf(strings.Fields(args), []string{"KUBERNETES_SERVICE_HOST=10.0.0.1"})
		if err == nil {
			err = cfg.Validate()
		}
		if err != nil || len(cfg.Command) == 0 || len(cfg.Warnings) > 0 {
			t.Errorf("lameduck %s: %+v, %v", args, cfg, err)
		}
	}
	hook := found(`/lameduck, hold, ([^]]*)\]`, holdOutro)
	line, err := ParseHold(hook, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := line.Config()
	if err != nil || cfg.Delay != 10*time.Second || cfg.Until != shim.Quiet || !cfg.DelayGiven {
		t.Errorf("%q: %+v, %v", hook, cfg, err)
	}
}

// TestHelpWins: --help wins over a bad value, on the command line and in the environment.
func TestHelpWins(t *testing.T) {
	line, err := ParseHold([]string{"--delay=x", "-h"}, []string{"LAMEDUCK_UNTIL=x"})
	if err != nil || !line.Help {
		t.Errorf("%v, %v", line.Help, err)
	}
}

// TestSubcommandVariables: a variable of a flag that a subcommand lacks is for lameduck
// itself, and stays in the environment.
func TestSubcommandVariables(t *testing.T) {
	line, err := ParseHold(nil, []string{"LAMEDUCK_REWRITE=TERM:INT", "LAMEDUCK_DELAY=2", "LAMEDUCK_X=1"})
	if err != nil || !slices.Equal(line.Env, []string{"LAMEDUCK_REWRITE=TERM:INT", "LAMEDUCK_X=1"}) || len(line.Unknown) != 1 || line.Unknown[0].Name != "LAMEDUCK_X" {
		t.Errorf("%+v, %v", line, err)
	}
	line, err = ParseWatch(nil, []string{"LAMEDUCK_JSON=true"})
	if err != nil || !line.JSON {
		t.Errorf("%v, %v", line.JSON, err)
	}
}
