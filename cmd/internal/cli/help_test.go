package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// flagsFor returns kong's flags of a command.
func flagsFor(command string) []*kong.Flag {
	return flagsOf(command, newParser(new(Flags)).Model.Flags)
}

// helpFor returns the help of a command.
func helpFor(command, flag string) string {
	line, _ := Parse(command, []string{flag}, nil)
	return line.HelpText()
}

// TestHelp: --help of a command has all its flags and variables, and no others, each with a text,
// in 80 columns. That of lameduck itself fits on a screen, and --help-all has the rest.
func TestHelp(t *testing.T) {
	short := helpFor("run", "--help")
	isShort := strings.Count(short, "\n") <= 24
	if !isShort || !strings.Contains(short, "--until=COND") || strings.Contains(short, "--max-delay") {
		t.Errorf("--help is\n%s", short)
	}
	for command, help := range map[string]string{
		"run":   helpFor("run", "--help-all"),
		"hold":  helpFor("hold", "--help"),
		"watch": helpFor("watch", "--help"),
	} {
		own := byName(flagsFor(command))
		for _, f := range newParser(new(Flags)).Model.Flags {
			isOwn := own["--"+f.Name] != nil
			isListed := regexp.MustCompile(`(?m)^ {2,6}(-\w, )?--(\[no-\])?` + f.Name + `\b[^-]`).MatchString(help)
			hasVariable := strings.Contains(help, "($"+Variable(f)+")")
			describe(f)
			if isListed != isOwn || hasVariable != (isOwn && Variable(f) != "") || f.Help == "" {
				t.Errorf("%s --help: --%s is listed %v, its variable %v", command, f.Name, isListed, hasVariable)
			}
		}
		for line := range strings.Lines(short + help) {
			if len(line) > helpWidth+len("\n") {
				t.Errorf("too long: %q", line)
			}
		}
	}
}

// paragraph returns how the manual begins a flag's paragraph, in mdoc(7).
func paragraph(f *kong.Flag) string {
	describe(f)
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
	text, value, hasDefault := strings.Cut(strings.TrimSuffix(f.Help, "]"), " [")
	text = strings.ToUpper(text[:1]) + text[1:] + "."
	if hasDefault && value != "none" {
		text += "\nDefault: " + value + "."
	}
	return ".It " + title + "\n" + strings.ReplaceAll(text, "--", `\-\-`) + "\n"
}

// TestManual: the manual has a paragraph for each flag, which begins with the text of --help.
func TestManual(t *testing.T) {
	manual := manual(t)
	for _, f := range flagsFor("run") {
		if strings.Count(manual, paragraph(f)) != 1 {
			t.Errorf("docs/lameduck.8 does not have once\n%s", paragraph(f))
		}
	}
	if n := strings.Count(manual, "\n.It Fl "); n != len(flagsFor("run")) {
		t.Errorf("docs/lameduck.8 has paragraphs for %d flags", n)
	}
}

func manual(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/lameduck.8")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestExamples: the examples in the help and in the manual are valid command lines, without a
// warning in Kubernetes.
func TestExamples(t *testing.T) {
	plain := strings.NewReplacer(`\-`, "-", "\\e\n", " ").Replace(manual(t))
	examples := regexp.MustCompile(`(?m)^ *lameduck ((?:hold )?-.*)`).FindAllStringSubmatch(helpFor("run", "--help-all")+plain, -1)
	if len(examples) < 20 {
		t.Fatalf("found only %q", examples)
	}
	for _, m := range examples {
		call := m[1]
		got := configOf(wordsOf(t, call), []string{"KUBERNETES_SERVICE_HOST=10.0.0.1"})
		if strings.Contains(got, "error: ") || strings.Contains(got, "Warnings=") {
			t.Errorf("lameduck %s: %s", call, got)
		}
	}
}
