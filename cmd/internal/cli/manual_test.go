package cli

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

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
		words, parse := strings.Fields(m[1]), ParseRun
		if words[0] == "hold" {
			words, parse = words[1:], ParseHold
		}
		var cfg shim.Config
		line, err := parse(words, []string{"KUBERNETES_SERVICE_HOST=10.0.0.1"})
		if err == nil {
			cfg, err = line.Config()
		}
		if err == nil && len(cfg.Warnings) > 0 {
			err = errors.New(cfg.Warnings[0])
		}
		if err == nil {
			err = cfg.Validate()
		}
		if err != nil {
			t.Errorf("%s: %v", m[0], err)
		}
	}
}
