package cli

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

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
	if n := strings.Count(texts, "\n"); n != len(modelOf(t, "run"))+2 { // and --json and --only-stops
		t.Errorf("help.txt has %d texts", n)
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
		wantValid(t, args)
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

// TestSubcommandVariables: a variable of a flag that a subcommand lacks is for lameduck
// itself, and stays in the environment.
func TestSubcommandVariables(t *testing.T) {
	line, err := ParseHold(nil, []string{"LAMEDUCK_REWRITE=TERM:INT", "LAMEDUCK_DELAY=2", "LAMEDUCK_X=1"})
	if err != nil || !slices.Equal(line.Env, []string{"LAMEDUCK_REWRITE=TERM:INT", "LAMEDUCK_X=1"}) || len(line.Unknown) != 1 || line.Unknown[0].Flag != "LAMEDUCK_X" {
		t.Errorf("%+v, %v", line, err)
	}
	line, err = ParseWatch(nil, []string{"LAMEDUCK_JSON=true"})
	if err != nil || !line.JSON {
		t.Errorf("%v, %v", line.JSON, err)
	}
}

var update = flag.Bool("update", false, "write docs/lameduck.8")

const manual = "../../../docs/lameduck.8"

// item returns a flag's paragraph, in mdoc(7), without what the manual alone says.
func item(f *kong.Flag) string {
	title := "Fl -" + f.Name
	if f.Short != 0 {
		title = fmt.Sprintf("Fl %c , %s", f.Short, title)
	}
	if f.Tag.Negatable != "" {
		title += " , Fl -no-" + f.Name
	}
	if !f.IsBool() {
		title += "= Ns Ar " + f.PlaceHolder
	}
	text, value, hasDefault := strings.Cut(strings.TrimSuffix(textOf(f.Name), "]"), " [")
	text = strings.ToUpper(text[:1]) + text[1:] + "."
	if hasDefault && value != "none" {
		text += "\nDefault: " + value + "."
	}
	return ".It " + title + "\n" + strings.ReplaceAll(text, "--", `\-\-`) + "\n"
}

// TestManual: the manual is testdata/manual.mdoc with a paragraph for each flag in place of
// "@flag NAME".
func TestManual(t *testing.T) {
	template, err := os.ReadFile("testdata/manual.mdoc")
	if err != nil {
		t.Fatal(err)
	}
	flags := modelOf(t, "run")
	var page strings.Builder
	for line := range strings.Lines(string(template)) {
		name, isFlag := strings.CutPrefix(strings.TrimSpace(line), "@flag ")
		switch {
		case !isFlag:
			page.WriteString(line)
		case flags[name] == nil:
			t.Fatalf("--%s does not exist, or is there twice", name)
		default:
			page.WriteString(item(flags[name]))
			delete(flags, name)
		}
	}
	for name := range flags {
		t.Errorf("no --%s in testdata/manual.mdoc", name)
	}
	if *update {
		os.WriteFile(manual, []byte(page.String()), 0o644)
	}
	if committed, err := os.ReadFile(manual); err != nil || string(committed) != page.String() {
		t.Errorf("docs/lameduck.8 is not as written by go test -update: %v", err)
	}
}

// TestManualExamples: the examples in the manual are valid command lines, without a warning
// in Kubernetes.
func TestManualExamples(t *testing.T) {
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	_, plain, _ := strings.Cut(strings.NewReplacer(`\-`, "-", "\\e\n", " ").Replace(string(text)), "\n.Sh EXAMPLES\n")
	examples := regexp.MustCompile(`(?m)^lameduck (.*)$`).FindAllStringSubmatch(plain, -1)
	if len(examples) < 7 {
		t.Fatalf("found only %q", examples)
	}
	for _, m := range examples {
		wantValid(t, m[1])
	}
}

// wantValid wants a command line to be valid, without a warning in Kubernetes.
func wantValid(t *testing.T, args string) {
	t.Helper()
	words, parse := strings.Fields(args), ParseRun
	if words[0] == "hold" {
		words, parse = words[1:], ParseHold
	}
	var cfg shim.Config
	line, err := parse(words, []string{"KUBERNETES_SERVICE_HOST=10.0.0.1"})
	if err == nil {
		cfg, err = line.Config()
	}
	if err == nil {
		_, err = shim.Review(cfg)
	}
	if err != nil || len(cfg.Warnings) > 0 {
		t.Errorf("lameduck %s: %v, warnings %q", args, err, cfg.Warnings)
	}
}
