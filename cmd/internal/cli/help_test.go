package cli

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// modelOf returns the flags of kong's model of a grammar, by their names.
func modelOf(t testing.TB, grammar any) map[string]*kong.Flag {
	t.Helper()
	model, err := Model(grammar)
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]*kong.Flag{}
	for _, f := range model.Flags {
		flags[f.Name] = f
	}
	return flags
}

var (
	longFlag     = regexp.MustCompile(`--(?:\[no-\]|no-)?([a-z]+(?:-[a-z]+)*)`)
	shortFlag    = regexp.MustCompile(`(?m)^ +(-[a-zA-Z], --[a-z-]*[a-z])`)
	variableName = regexp.MustCompile(`LAMEDUCK_[A-Z_]*[A-Z]`)
	example      = regexp.MustCompile(`(?m)^ +lameduck (.*)$`)
)

// found returns the last group of each match of re, sorted and without duplicates.
func found(re *regexp.Regexp, text string) []string {
	set := map[string]bool{}
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		set[m[len(m)-1]] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// TestFlagsOf: Parse finds the same flags as kong's model has.
func TestFlagsOf(t *testing.T) {
	for _, grammar := range []any{new(Run), new(HoldOnly), new(Watch)} {
		model := modelOf(t, grammar)
		flags := flagsOf(grammar)
		if len(flags) != len(model) {
			t.Errorf("%T: %d flags, %d in the model", grammar, len(flags), len(model))
		}
		fields := map[string]bool{}
		for _, f := range flags {
			m := model[f.name()]
			if m == nil {
				t.Errorf("--%s is not in the model", f.name())
				continue
			}
			short := ""
			if m.Short != 0 {
				short = string(m.Short)
			}
			if f.short != short || f.env != strings.Join(m.Envs, ",") || f.hasValue == m.IsBool() || len(m.Aliases) > 0 || len(f.names) > 1 != m.Tag.Has("negatable") {
				t.Errorf("--%s is %+v, in the model %+v", f.name(), f, m)
			}
			if _, ok := f.value.Addr().Interface().(flagValue); !ok || fields[f.field.Name] {
				t.Errorf("--%s: the field %s has another type than those in values.go, or is there twice", f.name(), f.field.Name)
			}
			if _, remedy := met(f.needs(), new(shim.Config)); f.needs() != "" && remedy == "" {
				t.Errorf("--%s needs %q, which config.go does not know", f.name(), f.needs())
			}
			fields[f.field.Name] = true
		}
	}
}

// TestTags: each flag has a group and a help, and a variable unless the flag only asks.
func TestTags(t *testing.T) {
	var asking []string
	for name, f := range modelOf(t, new(Run)) {
		if f.Help == "" || f.Group == nil || !f.IsBool() && f.PlaceHolder == "" {
			t.Errorf("--%s lacks a tag: help, group or placeholder", name)
		}
		switch {
		case len(f.Envs) == 0:
			asking = append(asking, name)
		case f.Envs[0] != Prefix+strings.ToUpper(strings.ReplaceAll(name, "-", "_")):
			t.Errorf("--%s has the variable %s", name, f.Envs[0])
		}
	}
	slices.Sort(asking)
	if !slices.Equal(asking, []string{"explain", "help", "help-all", "version"}) {
		t.Errorf("no variables for %q", asking)
	}
}

// TestHelp: --help-all has all flags, short forms and variables of the grammar, and no
// others.
func TestHelp(t *testing.T) {
	flags := modelOf(t, new(Run))
	all := new(Run).HelpAllText()
	if want, got := slices.Sorted(maps.Keys(flags)), found(longFlag, all); !slices.Equal(got, want) {
		t.Errorf("the help has the flags\n%v\nthe grammar\n%v", got, want)
	}
	names := slices.Clone(hookVariables)
	var shorts []string
	for name, f := range flags {
		names = append(names, f.Envs...)
		if f.Short != 0 {
			shorts = append(shorts, fmt.Sprintf("-%c, --%s", f.Short, name))
		}
	}
	slices.Sort(names)
	slices.Sort(shorts)
	if got := found(variableName, all); !slices.Equal(got, names) {
		t.Errorf("the help has the variables\n%v\nthe flags\n%v", got, names)
	}
	if got := found(shortFlag, all); !slices.Equal(got, shorts) {
		t.Errorf("the help has the short flags\n%q\nthe grammar\n%q", got, shorts)
	}
	for name, f := range flags {
		title := "\n" + f.Group.Title + "\n"
		_, group, there := strings.Cut(all, title)
		group, _, _ = strings.Cut(group, "\n\n")
		if !there || !slices.Contains(found(longFlag, group), name) {
			t.Errorf("--%s is not in its group, %s", name, f.Group.Title)
		}
		if common := strings.Contains(new(Run).HelpText(), "--"+name+" ") || strings.Contains(new(Run).HelpText(), "--"+name+"="); common != f.Tag.Has("common") {
			t.Errorf("--%s is in --help: %t", name, common)
		}
	}
}

// TestHelpFits: --help fits on one screen of 80 columns and 24 lines.
func TestHelpFits(t *testing.T) {
	short := new(Run).HelpText()
	if n := strings.Count(short, "\n"); n > 24 {
		t.Errorf("--help has %d lines", n)
	}
	for _, text := range []string{short, new(Run).HelpAllText(), new(HoldOnly).HelpText(), new(Watch).HelpText(), holdHelpAll(), watchHelpAll()} {
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

// holdHelpAll returns the answer to lameduck hold --help-all.
func holdHelpAll() string {
	line, _ := ParseHold([]string{"--help-all"}, nil)
	return line.HelpText()
}

// watchHelpAll returns the answer to lameduck watch --help-all.
func watchHelpAll() string {
	line, _ := ParseWatch([]string{"--help-all"}, nil)
	return line.HelpText()
}

// TestSubcommandHelpAll: --help-all of a subcommand has the subcommand's own flags, all with
// their help and variables.
func TestSubcommandHelpAll(t *testing.T) {
	for help, grammar := range map[string]any{holdHelpAll(): new(HoldOnly), watchHelpAll(): new(Watch)} {
		var want []string
		for name, flag := range modelOf(t, grammar) {
			want = append(want, flag.Envs...)
			if !slices.Contains(found(longFlag, help), name) {
				t.Errorf("no --%s in\n%s", name, help)
			}
		}
		slices.Sort(want)
		if got := found(regexp.MustCompile(`\(\$(LAMEDUCK_[A-Z_]+)\)`), strings.Join(strings.Fields(help), " ")); !slices.Equal(got, want) {
			t.Errorf("the help of %T has the variables\n%v\nthe grammar\n%v", grammar, got, want)
		}
	}
	if help := holdHelpAll(); strings.Contains(help, "after a stop signal") || !strings.Contains(help, "[quiet]") {
		t.Errorf("not the defaults of hold:\n%s", help)
	}
}

// TestHelpExamples: the examples in the help are valid, without a warning in Kubernetes.
func TestHelpExamples(t *testing.T) {
	_, text, _ := strings.Cut(new(Run).HelpAllText(), "\nExamples:\n")
	examples := found(example, text)
	if len(examples) < 10 {
		t.Fatalf("found only %q", examples)
	}
	for _, args := range examples {
		cfg, err := configOf(args, "KUBERNETES_SERVICE_HOST=10.0.0.1")
		if err == nil {
			err = cfg.Validate()
		}
		if err != nil || len(cfg.Command) == 0 || len(cfg.Warnings) > 0 {
			t.Errorf("lameduck %s: %+v, %v", args, cfg, err)
		}
	}
}

// TestSubcommandHelp: the help of hold and of watch has the flags of their grammars, and
// valid examples.
func TestSubcommandHelp(t *testing.T) {
	for help, grammar := range map[string]any{new(HoldOnly).HelpText(): new(HoldOnly), new(Watch).HelpText(): new(Watch)} {
		want := slices.Sorted(maps.Keys(modelOf(t, grammar)))
		if got := found(longFlag, help); !slices.Equal(got, want) {
			t.Errorf("the help of %T has the flags\n%v\nthe grammar\n%v", grammar, got, want)
		}
	}
	words := regexp.MustCompile(`/lameduck, hold, ([^]]*)\]`).FindStringSubmatch(holdOutro)
	if words == nil {
		t.Fatal("no example of a hook")
	}
	line, err := ParseHold(strings.Split(words[1], ", "), []string{"KUBERNETES_SERVICE_HOST=10.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := line.Config()
	if err != nil || cfg.Validate() != nil || cfg.Delay != 10*time.Second || cfg.Until != shim.Quiet || !cfg.DelayGiven {
		t.Errorf("%q: %+v, %v", words[1], cfg, err)
	}
}

// TestHoldHelp: the help of hold has the defaults of hold, not the defaults of lameduck, and
// no stop signal, which hold does not wait for.
func TestHoldHelp(t *testing.T) {
	line, err := ParseHold(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := line.Config()
	if err != nil {
		t.Fatal(err)
	}
	help := new(HoldOnly).HelpText()
	if !strings.Contains(help, fmt.Sprintf("[%s]", cfg.Until)) {
		t.Errorf("no default %s in\n%s", cfg.Until, help)
	}
	for _, wrong := range []string{"[elapsed]", "after a stop signal"} {
		if strings.Contains(help, wrong) {
			t.Errorf("%q in\n%s", wrong, help)
		}
	}
}

// TestWatchVariable: the flag that only watch has is a variable, too.
func TestWatchVariable(t *testing.T) {
	line, err := ParseWatch(nil, []string{"LAMEDUCK_JSON=true"})
	if err != nil || !line.JSON.Value {
		t.Errorf("%v, %v", line.JSON, err)
	}
}

// TestHelpWins: --help wins over a bad value, on the command line and in the environment.
func TestHelpWins(t *testing.T) {
	line, err := ParseHold([]string{"--delay=x", "-h"}, []string{"LAMEDUCK_UNTIL=x"})
	if err != nil || !line.Help.Value {
		t.Errorf("%v, %v", line.Help, err)
	}
}

// TestSubcommandFlags: flags and variables of lameduck that hold and watch lack. A flag is
// an error; a variable is for lameduck itself, and stays in the environment.
func TestSubcommandFlags(t *testing.T) {
	line, err := ParseHold(nil, []string{"LAMEDUCK_REWRITE=TERM:INT", "LAMEDUCK_DELAY=2", "LAMEDUCK_X=1"})
	if err != nil || !reflect.DeepEqual(line.Env, []string{"LAMEDUCK_REWRITE=TERM:INT", "LAMEDUCK_X=1"}) || len(line.Unknown) != 1 || line.Unknown[0].Name != "LAMEDUCK_X" {
		t.Errorf("%+v, %v", line, err)
	}
	for _, args := range []string{"--rewrite=TERM:INT", "x", "-- x"} {
		_, err := ParseWatch(strings.Fields(args), nil)
		oneLine(t, args, err, "lameduck watch --help lists the flags; to run a program of that name: lameduck -- watch")
	}
	if _, err := ParseWatch([]string{"--"}, nil); err != nil {
		t.Error(err)
	}
}
