package cli

import "github.com/lameduck-init/lameduck/shim"

// Flags are the flags of lameduck and of its subcommands, as kong reads them. The tag "of"
// has the commands that have the flag, if not those of its group; see commands. The other
// tags are explained at shim.Config.
type Flags struct {
	shim.Config

	LogFormat string `group:"Report:" type:"format"`

	JSON      bool `group:"View:" type:"bool"` // of lameduck watch
	OnlyStops bool `group:"View:" type:"bool"`

	Questions `group:"Questions:"`
}

// Questions are the flags that only ask. They have no variables.
type Questions struct {
	Explain bool `of:"run hold"`
	Version bool
	Help    bool `of:"run hold watch" short:"h"`
	HelpAll bool `of:"run hold watch"`
}

// commands has the commands that have the flags of a group, if not only run, which is lameduck itself.
var commands = map[string]string{
	"Hold:":    "run hold",
	"Traffic:": "run hold watch",
	"Report:":  "run hold",
	"View:":    "watch",
}
