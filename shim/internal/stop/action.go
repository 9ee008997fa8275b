package stop

import (
	"strings"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Verb is the kind of an Action.
type Verb int

// The verbs, in terms of the action's Signal.
const (
	Forward             Verb = iota // send Signal, which arrived from outside, to the command
	Send                            // send Signal, a step of the schedule, to the command or to those below it; see History.Aim
	Tell                            // likewise send Signal, that of --on-stop, to a process that handles it
	GiveTerminal                    // put the command into the terminal's foreground, if lameduck is in the foreground
	StopSelf                        // stop lameduck itself by Signal
	GiveTerminalOrStop              // GiveTerminal and Continue; in the background, stop lameduck by TSTP
	TermGroup                       // send Signal to the process group of the exited command
	Look                            // tell whether processes are at work, and signal those whose turn it is; see History.Left
	KillDescendants                 // send KILL to all remaining processes
	StartSampling                   // start sampling the traffic
	StopHealth                      // switch the health listener to its mode for a stop
	RunOnStop                       // start the --on-stop command
	KillOnStop                      // kill the --on-stop command
	ReportStart                     // report the start of the sequence
	ReportHold                      // report that the hold goes on
	ReportLate                      // report the state of the sequence ReportMargin before the grace period ends
	ReportEnd                       // report how the sequence ended
	NoteForwardedAtOnce             // log that Signal, a stop signal, was forwarded at once: no hold was asked for
	WarnNotHeld                     // log that Signal, which may be how the container is stopped, does not begin a stop
	WarnOutOfReach                  // log that no signal reaches the command, and that lameduck exits instead
)

// scriptWords are the verbs in golden scripts; "*" stands for Signal.
var scriptWords = [...]string{
	"forward *", "send *", "tell *", "give terminal", "stop self *", "give terminal or stop",
	"term group *", "look", "kill descendants", "start sampling",
	"stop health", "run on-stop", "kill on-stop", "report start", "report hold", "report late", "report end",
	"note forwarded *", "warn not held *", "warn out of reach",
}

// Action is an order to the loop. The machine itself does nothing.
type Action struct {
	Verb   Verb
	Signal sig.Signal
}

// String returns the action as golden scripts spell it: "send USR1".
func (a Action) String() string {
	return strings.Replace(scriptWords[a.Verb], "*", a.Signal.String(), 1)
}
