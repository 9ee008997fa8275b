package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

const presetsHelp = `lameduck presets explains the preset NAME, with its source, or lists all presets.

Usage: lameduck presets [NAME]
`

// asksHelp reports whether the arguments of a subcommand without flags of its own ask for
// help, before any "--".
func asksHelp(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "--":
			return false
		case "-h", "--help", "--help-all":
			return true
		}
	}
	return false
}

// presets lists the presets, or explains the named preset.
func presets(args []string) int {
	if asksHelp(args) {
		return answer(presetsHelp)
	}
	args = cli.DropDashes(args)
	switch {
	case len(args) == 0:
		return answer(presetList())
	case len(args) > 1 || strings.HasPrefix(args[0], "-"):
		return fail(errors.New("presets takes one name, or no name for the list: lameduck presets [NAME]"))
	}
	name, err := cli.ParsePreset(args[0])
	if err != nil {
		return fail(err)
	}
	if p := shim.PresetNamed(name); p != nil {
		return answer(explainPreset(p))
	}
	return answer(autoText)
}

const autoText = `auto
  uses the preset of the program that runs when a stop signal arrives, or at the
  end of the hold, so an entrypoint script has time to execute it. It looks at
  the executable and the command line, and sees through python, ruby and java. A
  shell is not recognized, since it may yet execute the program.
`

// presetList returns a line for each preset.
func presetList() string {
	list := fmt.Sprintf("%-12s detects the program that runs\n", shim.AutoPreset)
	for _, p := range shim.Presets() {
		list += fmt.Sprintf("%-12s %s\n", p.Name, p.Schedule)
	}
	return list
}

// explainPreset returns the explanation of a preset, with the source, in 80 columns.
func explainPreset(p *shim.Preset) string {
	text := strings.Join(append([]string{p.Name}, p.Aliases...), ", ")
	row := func(title, words string) {
		column := 80
		for word := range strings.FieldsSeq(words) {
			column += 1 + len(word)
			if column > 80 {
				text += fmt.Sprintf("\n  %-9s", title)
				title, column = "", len("  source    "+word)
			}
			text += " " + word
		}
	}
	on := "TERM"
	for _, s := range p.StopSignals {
		on += " or " + s.String()
	}
	row("sends", p.Schedule.String()+" on "+on)
	row("effect", p.Says)
	if p.Kept != "" {
		row("kept", "connections that clients keep: "+p.Kept)
	}
	for _, m := range p.Exit {
		row("exit", fmt.Sprintf("%d is reported as %d", m.From, m.To))
	}
	row("caveat", p.Caveat)
	proven := "from documentation"
	if p.Proven {
		proven = "tested on the real server"
	}
	row("source", p.Source+" ("+proven+")")
	return text + "\n"
}
