package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim"
)

const manPage = "../../../docs/lameduck.8"

// plainManual returns the manual without mdoc(7)'s escapes, and with flags as they are
// typed.
func plainManual(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(manPage)
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.NewReplacer(`\-`, "-", `\e`, `\`).Replace(string(text))
	plain = regexp.MustCompile(`\bFl -([a-z])`).ReplaceAllString(plain, "Fl --$1")
	return regexp.MustCompile(`\bFl ([a-z])\b`).ReplaceAllString(plain, "Fl -$1")
}

// TestManual: the manual has a paragraph for each flag of the grammars, with short form and
// value, and each variable, and no others.
func TestManual(t *testing.T) {
	text := plainManual(t)
	items := map[string]string{} // what follows a flag's name in its paragraph's title
	for _, m := range regexp.MustCompile(`(?m)^\.It (?:Fl (-\w) , )?Fl --([a-z-]+)(.*)$`).FindAllStringSubmatch(text, -1) {
		if _, twice := items[m[2]]; twice {
			t.Errorf("--%s has two paragraphs", m[2])
		}
		items[m[2]] = m[1] + m[3]
	}
	flags := modelOf(t, new(Run))
	for name, flag := range flags {
		title, ok := items[name]
		if !ok {
			t.Errorf("--%s has no paragraph", name)
			continue
		}
		short := ""
		if flag.Short != 0 {
			short = "-" + string(flag.Short)
		}
		if !strings.HasPrefix(title, short) || short == "" && strings.HasPrefix(title, "-") {
			t.Errorf("--%s is %q there, and its short form %q", name, title, short)
		}
		if valued := strings.Contains(title, "= Ns Ar "); valued == flag.IsBool() {
			t.Errorf("--%s is with or without a value; the title has %q", name, title)
		}
	}
	want := slices.Concat(slices.Collect(maps.Keys(flags)), slices.Collect(maps.Keys(modelOf(t, new(HoldOnly)))), slices.Collect(maps.Keys(modelOf(t, new(Watch)))))
	slices.Sort(want)
	if got := found(longFlag, text); !slices.Equal(got, slices.Compact(want)) {
		t.Errorf("the manual has the flags\n%v\nthe grammars\n%v", got, slices.Compact(want))
	}
	names := slices.Clone(hookVariables)
	for _, f := range flags {
		names = append(names, f.Envs...)
	}
	slices.Sort(names)
	if got := found(regexp.MustCompile(`(?m)^\.Ev (LAMEDUCK_[A-Z_]+)`), text); !slices.Equal(got, names) {
		t.Errorf("the manual has the variables\n%v\nthe flags\n%v", got, names)
	}
	if got := found(variableName, text); !slices.Equal(got, names) {
		t.Errorf("the manual names the variables\n%v\nthe flags have\n%v", got, names)
	}
}

// TestManualSections: the manual has the usual sections, in the usual order.
func TestManualSections(t *testing.T) {
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^\.Sh (.*)$`).FindAllStringSubmatch(plainManual(t), -1) {
		got = append(got, m[1])
	}
	want := []string{"NAME", "SYNOPSIS", "DESCRIPTION", "ENVIRONMENT", "THE STOP", "TRAFFIC", "FILES", "EXIT STATUS", "EXAMPLES", "SEE ALSO", "CAVEATS"}
	if !slices.Equal(got, want) {
		t.Errorf("the sections are %q, want %q", got, want)
	}
}

// TestManualValues: the manual has the words that are values of flags, the subcommands, and
// the names that lameduck may be called by.
func TestManualValues(t *testing.T) {
	text := plainManual(t)
	for flag, words := range enumerated(t) {
		for _, word := range words {
			if !regexp.MustCompile(`(?m)^\.(It )?Cm ` + word + `( |$)`).MatchString(text) {
				t.Errorf("--%s=%s is not in the manual", flag, word)
			}
		}
	}
	for _, name := range inSource(t, "dropin.go", `isReleaseOf\(base, "([a-z-]+)"\)`) {
		if !regexp.MustCompile(`(?m)^\.Nm ` + name + `( ,)?$`).MatchString(text) {
			t.Errorf("that it may be called %s is not in the manual", name)
		}
	}
	for _, command := range inSource(t, "run.go", `(?m)^\t\tcase "([a-z]+)":$`) {
		if !strings.Contains(text, "\n.Cm "+command+"\n") || !strings.Contains(text, "\n.It Cm "+command) {
			t.Errorf("the subcommand %s is not in the manual", command)
		}
	}
}

// TestManualExamples: the examples in the manual are valid command lines.
func TestManualExamples(t *testing.T) {
	_, text, _ := strings.Cut(plainManual(t), "\n.Sh EXAMPLES\n")
	text = strings.ReplaceAll(text, "\\\n", " ")
	examples := regexp.MustCompile(`(?m)^lameduck (.*)$`).FindAllStringSubmatch(text, -1)
	if len(examples) < 7 {
		t.Fatalf("found only %q", examples)
	}
	for _, m := range examples {
		if err := tryWords(strings.Fields(m[1])); err != nil {
			t.Errorf("%s: %v", m[0], err)
		}
	}
}

// TestManualLint: mandoc(1) and man(1) have no complaints about the manual.
func TestManualLint(t *testing.T) {
	for _, linter := range [][]string{
		{"mandoc", "-Tlint", "-W", "warning", manPage},
		{"man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", manPage},
	} {
		t.Run(linter[0], func(t *testing.T) {
			if _, err := exec.LookPath(linter[0]); err != nil {
				t.Skip(linter[0], " is not installed")
			}
			cmd := exec.CommandContext(t.Context(), linter[0], linter[1:]...)
			var said strings.Builder
			cmd.Stderr = &said
			out, err := cmd.Output()
			if linter[0] == "mandoc" {
				said.Write(out)
			} else if strings.Contains(said.String(), "No such file") || len(out) == 0 && strings.Contains(said.String(), "minimized") {
				t.Skipf("man cannot set manuals here: %s", said.String())
			}
			if err != nil || said.Len() > 0 {
				t.Errorf("%q: %v\n%s", linter, err, said.String())
			}
		})
	}
}

// enumerated returns the values of the flags that take a word of a few: the words that the
// error for any other word suggests.
func enumerated(t *testing.T) map[string][]string {
	t.Helper()
	words := map[string][]string{}
	for _, name := range []string{"until", "log-level", "log-format", "health-during"} {
		_, err := configOf("--"+name+"=? --health=:1 x", "")
		_, list, found := strings.Cut(err.Error(), "give ")
		if !found {
			t.Fatal(err)
		}
		list = regexp.MustCompile(` \(.*?\)`).ReplaceAllString(list, "")
		words[name] = regexp.MustCompile(`, | or `).Split(list, -1)
		for _, word := range words[name] {
			if _, err := configOf("--"+name+"="+word+" --health=:1 x", ""); err != nil || len(words[name]) < 2 {
				t.Errorf("--%s=%s of %q: %v", name, word, words[name], err)
			}
		}
	}
	return words
}

// inSource returns what the group of re matches in a file of the program.
func inSource(t *testing.T, file, re string) (words []string) {
	t.Helper()
	text, err := os.ReadFile("../../lameduck/" + file)
	if err != nil {
		t.Fatal(err)
	}
	words = found(regexp.MustCompile(re), string(text))
	if len(words) < 4 {
		t.Fatalf("only %q in %s", words, file)
	}
	return words
}

// tryWords returns an error if lameduck or lameduck hold refuses the arguments in
// Kubernetes, or warns.
func tryWords(args []string) error {
	env := []string{"KUBERNETES_SERVICE_HOST=10.0.0.1"}
	if args[0] == "hold" {
		line, err := ParseHold(args[1:], env)
		if err != nil {
			return err
		}
		return tryConfig(line.Config())
	}
	line, err := ParseRun(args, env)
	if err == nil && len(line.Command) == 0 {
		err = errors.New("no command")
	}
	if err != nil {
		return err
	}
	return tryConfig(line.Config())
}

func tryConfig(cfg shim.Config, err error) error {
	switch {
	case err != nil:
		return err
	case len(cfg.Warnings) > 0:
		return fmt.Errorf("warnings: %q", cfg.Warnings)
	}
	return cfg.Validate()
}
