package stop

import "fmt"

// String returns the event for failure messages: "TERM", "exit 0", "killed KILL".
func (e Event) String() string {
	switch e.Kind {
	case SignalArrived:
		return e.Signal.String()
	case CommandStopped:
		return "stopped " + e.Signal.String()
	case CommandExited:
		if e.Signal != 0 {
			return "killed " + e.Signal.String()
		}
		return fmt.Sprintf("exit %d", e.Code)
	case Sampled:
		text := "look " + e.Traffic.String()
		if e.Active {
			text += fmt.Sprintf(", %d at risk", e.AtRisk)
		}
		if e.Waiting {
			text += ", waiting"
		}
		return text
	}
	return map[Kind]string{Tick: "tick", CommandStarted: "started", CommandContinued: "continued",
		OrphanReaped: "orphan", NoChildren: "childless", PreStop: "asked", OnStopEnded: "hook ended"}[e.Kind]
}
