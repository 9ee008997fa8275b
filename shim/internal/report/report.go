package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Terms are the parts of the configuration that a report refers to.
type Terms struct {
	StopConfig    *stop.Config
	TrafficConfig *traffic.Config
	Hook          bool   // a preStop hook holds beside PID 1, and sends no signal
	GraceAssumed  bool   // the grace period was not given
	AssumedFrom   string // where the assumed grace period comes from: "Kubernetes"
	Caveat        string // why the grace period may be too short; "": long enough
	Server        string // the preset's name of the command; "": unknown
	ClosesKept    bool   // at its signal the server closes kept connections
	Spelling      Spelling
}

// Observation is the result of one sample of the traffic.
type Observation struct {
	Traffic         traffic.Summary
	Observer        string   // the source of the samples; "": no TCP port counts
	Blind           bool     // no source was left
	InFlightUnknown bool     // the source does not show requests in flight
	Scope           string   // how the listeners were found, in words
	ScopeName       string   // the same, as JSON has it
	Neighbors       bool     // the listeners of neighbors in the network namespace count
	UDPPorts        []uint16 // ports on which the container receives UDP
	LatePorts       []uint16 // ports opened by the container since the trigger
	Unseen          []string // where else the container serves and cannot be observed, in words
	PathsPresent    []string // existing paths of --wait-gone
}

// Stop is all that is known about a stop at the moment Now.
type Stop struct {
	Terms
	stop.Record
	Now          time.Time
	InHold       Observation  // from the last sample before the stop signal was sent
	AfterHold    *Observation // from the last sample since; nil: none
	ShellDropped sig.Signal   // a signal that the command, a shell, did not forward; 0: none
	OnStopUntil  time.Time    // when --on-stop ended, or was killed at the ceiling; zero: not yet
}

// after returns the time from the trigger to at.
func (s *Stop) after(at time.Time) time.Duration { return at.Sub(s.TriggeredAt) }

// spell returns text with lameduck's flags in it spelled as the user has to give them.
func (s *Stop) spell(text string) string { return s.Spelling.In(text) }

// trigger returns the name of the signal that began the stop, "hold" for a hook.
func (s *Stop) trigger() string {
	if s.Trigger == 0 {
		return "hold"
	}
	return s.Trigger.String()
}

// Announcement returns the line for the trigger: what will happen.
func (s *Stop) Announcement() string {
	head := func(brief bool) string {
		if !s.StopConfig.Gate.Holds() {
			return fmt.Sprintf("%s: no hold; now %s", s.trigger(), s.steps(brief))
		}
		holding := fmt.Sprintf("%s: holding %s", s.trigger(), s.spell(s.StopConfig.Gate.String()))
		if s.Hook {
			return holding
		}
		return holding + ", then " + s.steps(brief)
	}
	return fit(head, s.prospects())
}

// steps returns the schedule, or the schedule up to its first signal and the number of the
// other signals.
func (s *Stop) steps(brief bool) string {
	isSignal := func(step stop.Step) bool { return step.Signal != 0 || step.StopSignal }
	first := slices.IndexFunc(s.Steps, isSignal)
	if !brief || first < 0 {
		return s.Steps.String()
	}
	others := 0
	for _, step := range s.Steps[first+1:] {
		if isSignal(step) {
			others++
		}
	}
	return s.Steps[:first+1].String() + andMore(others)
}

// prospects returns what may end the hold, or the stop, early.
func (s *Stop) prospects() []part {
	var parts []part
	gate := &s.StopConfig.Gate
	switch {
	case s.Hook:
		parts = append(parts, part{forms: []string{"TERM ends the wait"}, weight: 1})
	case gate.Holds():
		parts = append(parts, part{forms: []string{fmt.Sprintf("a second %v ends the wait", s.Trigger)}, weight: 1})
	}
	if s.StopConfig.KillAfter > 0 {
		parts = append(parts, part{forms: []string{fmt.Sprintf("KILL %s after the first signal", stop.FormatDuration(s.StopConfig.KillAfter))}, weight: 3})
	}
	switch {
	case s.Caveat != "":
		parts = append(parts, part{forms: []string{s.Caveat}, weight: 4})
	case s.GraceAssumed && gate.MaxHold() > gate.Floor:
		grace := fmt.Sprintf("grace period assumed: %s", stop.FormatDuration(s.StopConfig.Grace))
		parts = append(parts, part{forms: []string{grace + ", as in " + s.AssumedFrom, grace}, weight: 2})
	}
	return parts
}

// Conclusion returns the line for the end: the outcome, and what led to the outcome.
func (s *Stop) Conclusion() string {
	return fit(func(brief bool) string {
		return s.headline(brief, s.held(), s.sent(brief), s.exitWithTime())
	}, s.parts())
}

// Progress returns the line for the termination log when the stop signal has been sent.
func (s *Stop) Progress() string {
	return fit(func(brief bool) string {
		return s.headline(brief, s.held(), s.sent(brief))
	}, s.parts())
}

// Late returns the line for one second before the end of the grace period, if the command
// or its descendants still run.
func (s *Stop) Late() string {
	return fit(func(brief bool) string {
		now := fmt.Sprintf("at +%s of %s", seconds(s.after(s.Now)), s.grace())
		switch {
		case s.Ended == "" && s.StopConfig.Gate.Holds():
			return fmt.Sprintf("%s: still holding %s%s", s.trigger(), now, s.inFlightNow())
		case !s.ExitedAt.IsZero():
			return fmt.Sprintf("%s: %s, and its descendants still run %s: %s", s.trigger(), s.exit(), now, join(s.held(), s.sent(brief)))
		}
		return fmt.Sprintf("%s: the command still runs %s%s: %s", s.trigger(), now, s.inFlightNow(), join(s.held(), s.sent(brief)))
	}, s.advice())
}

// headline returns the beginning of a line: what was at risk at the end of the hold, and
// the course of the stop.
func (s *Stop) headline(brief bool, course ...string) string {
	text := s.trigger() + ": "
	if risk := s.atRisk(brief); risk != "" {
		text += risk + ": "
	}
	return text + join(course...)
}

// atRisk returns what the stop signal may have cut: "nothing in flight, 24 open"; "" if the
// traffic was not seen. Requests that the hold has given up on are not in flight.
func (s *Stop) atRisk(brief bool) string {
	t := &s.InHold.Traffic
	if !s.InHold.sees() || !s.StopConfig.Gate.Holds() {
		return ""
	}
	inFlight, givenUp := s.inFlight()
	var parts []string
	switch {
	case inFlight > 0:
		parts = append(parts, counted(inFlight, "request")+" in flight")
	case s.InHold.InFlightUnknown && t.Open > 0:
		return fmt.Sprintf("%d open, in flight unknown", t.Open)
	case givenUp == 0:
		parts = append(parts, "nothing in flight")
	}
	if givenUp > 0 {
		parts = append(parts, counted(givenUp, "request")+" given up")
	}
	if t.Open > 0 && !brief {
		parts = append(parts, fmt.Sprintf("%d open", t.Open))
	}
	return strings.Join(parts, ", ")
}

// held returns how long the hold was, and why it ended.
func (s *Stop) held() string {
	if !s.StopConfig.Gate.Holds() {
		return "no hold"
	}
	held := fmt.Sprintf("held %s (%s)", seconds(s.after(s.EndedAt)), s.Ended)
	if s.Hook {
		held += " of " + s.grace()
	}
	return held
}

// maxSteps is the number of signals that a line names. Of more signals the first and the
// last are named.
const maxSteps = 3

// sent returns the signals that were sent, and how the search for a lull ended. The first
// signal has no time if the end of the hold is its time.
func (s *Stop) sent(brief bool) string {
	lull := s.lull()
	if brief {
		lull = ""
	}
	if len(s.Sent) == 0 {
		return lull
	}
	var steps []string
	for i, sent := range s.Sent {
		step := sent.Signal.String()
		if i > 0 || sent.At.Sub(s.EndedAt) >= 100*time.Millisecond {
			step += " at +" + seconds(s.after(sent.At))
		}
		if i == 0 && lull != "" {
			step += " " + lull
		}
		steps = append(steps, step)
	}
	if n := len(steps); n > maxSteps {
		steps = []string{steps[0], fmt.Sprintf("%d more", n-2), steps[n-1]}
	}
	return "sent " + strings.Join(steps, ", ")
}

// exit returns how the command ended. A KILL that lameduck sent is called lameduck's.
func (s *Stop) exit() string {
	if s.Exit.Signal == 0 {
		return fmt.Sprintf("exited %d", s.Exit.Code)
	}
	sender := ""
	if n := len(s.Sent); s.Exit.Signal == sig.KILL && n > 0 && s.Sent[n-1].Signal == sig.KILL {
		sender = "lameduck's "
	}
	return fmt.Sprintf("killed by %s%v (%d)", sender, s.Exit.Signal, 128+int(s.Exit.Signal))
}

// exitWithTime returns how the command ended, and when, and when the descendants for which
// --linger waits had ended.
func (s *Stop) exitWithTime() string {
	if s.Hook {
		return ""
	}
	exit := fmt.Sprintf("%s at +%s", s.exit(), seconds(s.after(s.ExitedAt)))
	if s.StopConfig.Linger > 0 && s.Now.Sub(s.ExitedAt) >= 100*time.Millisecond {
		exit += ", its descendants at +" + seconds(s.after(s.Now))
	}
	return exit + " of " + s.grace()
}

// grace returns the grace period in words.
func (s *Stop) grace() string {
	if s.GraceAssumed {
		return stop.FormatDuration(s.StopConfig.Grace) + " (assumed)"
	}
	return stop.FormatDuration(s.StopConfig.Grace)
}

// adaptive reports whether the hold depends on the traffic.
func (s *Stop) adaptive() bool { return s.StopConfig.Gate.Until != "" }

// seconds formats a measured time: "2.3 s".
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// maxListed is the number of ports that PortList names: media servers have thousands.
const maxListed = 8

// PortList returns ports in words: "53, 8125", or the first ones "and 9992 more".
func PortList(ports []uint16) string {
	more := ""
	if n := len(ports) - maxListed; n > 0 {
		ports = ports[:maxListed]
		more = fmt.Sprintf(" and %d more", n)
	}
	var names []string
	for _, port := range ports {
		names = append(names, fmt.Sprintf("%d", port))
	}
	return strings.Join(names, ", ") + more
}
