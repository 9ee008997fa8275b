package main

import (
	"fmt"
	"strings"

	"github.com/lameduck-init/lameduck/shim"
)

// presets lists what the presets do, or explains one.
func presets(args []string) int {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	switch {
	case len(args) == 0:
		return tellOn(false, presetList())
	case len(args) > 1 || strings.HasPrefix(args[0], "-"):
		return fail(fmt.Errorf("presets takes one name, or none: lameduck presets [NAME]"))
	}
	name, err := parsePreset(args[0])
	switch {
	case err != nil:
		return fail(err)
	case name == shim.AutoPreset:
		return tellOn(false, autoText)
	}
	for _, p := range shim.Presets() {
		if p.Name == name {
			return tellOn(false, explainPreset(p))
		}
	}
	return fail(fmt.Errorf("unknown preset %q", name))
}

const autoText = `auto
  takes the preset of the program that runs when a stop signal comes, or by the
  end of the hold, so that an entrypoint script may execute it in its own time;
  it goes by the executable and the command line, and sees through python, ruby
  and java. A shell is none: it may yet execute one.
`

// presetNames are all names there are, aliases among them.
func presetNames() []string {
	names := []string{shim.AutoPreset}
	for _, p := range shim.Presets() {
		names = append(append(names, p.Name), p.Aliases...)
	}
	return names
}

func presetList() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s %s\n", shim.AutoPreset, "by the program that runs")
	for _, p := range shim.Presets() {
		fmt.Fprintf(&b, "%-12s %s\n", p.Name, sends(p))
	}
	return b.String()
}

// sends is what a preset sends, in --stop-schedule's form.
func sends(p shim.Preset) string {
	if p.Schedule == "" {
		return "what came"
	}
	return p.Schedule
}

// explainPreset says in a few lines what a preset does, and where that is written.
func explainPreset(p shim.Preset) string {
	var b strings.Builder
	row := func(title, format string, args ...any) {
		for _, line := range wrap(fmt.Sprintf(format, args...), 80-len("  source    ")) {
			fmt.Fprintf(&b, "  %-9s %s\n", title, line)
			title = ""
		}
	}
	fmt.Fprintln(&b, strings.Join(append([]string{p.Name}, p.Aliases...), ", "))
	on := []string{"TERM"}
	for _, s := range p.StopSignals {
		on = append(on, s.String())
	}
	row("sends", "%s, on %s", sends(p), strings.Join(on, ", "))
	row("which", "%s", p.Says)
	for _, m := range p.Exit {
		row("exit", "%d is reported as %d", m.From, m.To)
	}
	for _, c := range p.Caveats {
		row("mind", "%s", c.Says)
	}
	proven := "from documentation"
	if p.Proven {
		proven = "tried on the real server"
	}
	row("source", "%s (%s)", p.Source, proven)
	return b.String()
}

// wrap parts text into lines of so many columns, between words.
func wrap(text string, columns int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > columns {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimLeft(line+" "+word, " ")
	}
	return append(lines, line)
}
