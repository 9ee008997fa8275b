package main

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// manPage is the manual.
const manPage = "../../docs/lameduck.8"

// plainManual is what it says, without mdoc(7)'s escapes and with its flags as they
// are typed.
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

// flagsOf are the names of a grammar's flags.
func flagsOf(t *testing.T, grammar any) (names []string) {
	t.Helper()
	k, err := kong.New(grammar, kong.Name("lameduck"), kong.NoDefaultHelp())
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range k.Model.Flags {
		names = append(names, flag.Name)
	}
	slices.Sort(names)
	return names
}

// TestManual holds the manual against the grammar, both ways: a paragraph for
// each flag, its short form and its value, and every variable.
func TestManual(t *testing.T) {
	text := plainManual(t)
	items := map[string]string{} // what follows a flag's name in its paragraph's title
	for _, m := range regexp.MustCompile(`(?m)^\.It (?:Fl (-\w) , )?Fl --([a-z-]+)(.*)$`).FindAllStringSubmatch(text, -1) {
		if _, twice := items[m[2]]; twice {
			t.Errorf("--%s has two paragraphs", m[2])
		}
		items[m[2]] = m[1] + m[3]
	}
	flags := grammar(t)
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
			t.Errorf("--%s takes a value, or takes none; it has %q", name, title)
		}
	}
	want := slices.Concat(slices.Collect(maps.Keys(flags)), flagsOf(t, &holdCLI{}), flagsOf(t, &watchCLI{}))
	slices.Sort(want)
	if got := found(longFlag, text); !slices.Equal(got, slices.Compact(want)) {
		t.Errorf("the manual has the flags\n%v\nthe grammars\n%v", got, slices.Compact(want))
	}
	variables := slices.Clone(hooked)
	for name := range flags {
		if !slices.Contains(twinless, name) {
			variables = append(variables, variableOf(name))
		}
	}
	slices.Sort(variables)
	if got := found(regexp.MustCompile(`(?m)^\.Ev (LAMEDUCK_[A-Z_]+)`), text); !slices.Equal(got, variables) {
		t.Errorf("the manual has the variables\n%v\nthe flags\n%v", got, variables)
	}
	if got := found(variable, text); !slices.Equal(got, variables) {
		t.Errorf("the manual names the variables\n%v\nthe flags have\n%v", got, variables)
	}
}

// TestManualSections: a reader finds what is looked for where manuals have it.
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

// TestManualValues: the words that a flag takes are there, and so are the names
// that lameduck is called by.
func TestManualValues(t *testing.T) {
	text := plainManual(t)
	for flag, words := range enumerated() {
		for _, word := range words {
			if !regexp.MustCompile(`(?m)^\.(It )?Cm ` + word + `( |$)`).MatchString(text) {
				t.Errorf("--%s=%s is not in the manual", flag, word)
			}
		}
	}
	for _, name := range dropins {
		if !regexp.MustCompile(`(?m)^\.Nm ` + name + `( ,)?$`).MatchString(text) {
			t.Errorf("that it may be called %s is not in the manual", name)
		}
	}
	for _, command := range subcommands {
		if !strings.Contains(text, "\n.Cm "+command+"\n") || !strings.Contains(text, "\n.It Cm "+command) {
			t.Errorf("the subcommand %s is not in the manual", command)
		}
	}
}

// TestManualExamples: what the manual tells people to type is right.
func TestManualExamples(t *testing.T) {
	_, text, _ := strings.Cut(plainManual(t), "\n.Sh EXAMPLES\n")
	text = strings.ReplaceAll(text, "\\\n", " ")
	examples := regexp.MustCompile(`(?m)^lameduck (.*)$`).FindAllStringSubmatch(text, -1)
	if len(examples) < 7 {
		t.Fatalf("found only %q", examples)
	}
	for _, m := range examples {
		if err := tryWords(strings.Fields(m[1]), nil); err != nil {
			t.Errorf("%s: %v", m[0], err)
		}
	}
}

// TestManualLint: who sets manuals finds no fault with it.
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
