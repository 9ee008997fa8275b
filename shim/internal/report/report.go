package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Terms are the parts of the configuration that a report refers to.
type Terms struct {
	*stop.Config
	TrafficConfig *traffic.Config
	Hook          bool     // a preStop hook holds beside PID 1, and sends no signal
	WaitGone      []string // the paths of --wait-gone
	GraceAssumed  bool     // the grace period was not given
	AssumedFrom   string   // where the assumed grace period comes from: "Kubernetes"
	GraceCaveat   string   // why the grace period may be too short; "": long enough
	Server        string   // the name of the command's preset; "": unknown
	ClosesKept    bool     // at its signal the server closes kept connections
	Caveat        string   // what a graceful stop of the server takes, as advice; ""
}

// Observation is the result of one sample of the traffic. The zero value shows nothing.
type Observation struct {
	traffic.Summary
	Observer        string   // the source of the samples; "": no TCP port counts
	Blind           bool     // no source was left
	InFlightUnknown bool     // the source does not show requests in flight
	ScopeName       string   // how the listeners were found, as JSON has it
	UDPPorts        []uint16 // ports on which the container receives UDP
	LatePorts       []uint16 // ports opened by the container since the trigger
	Unseen          []string // where else the container serves and cannot be observed, in words
	PathsPresent    []string // existing paths of --wait-gone
}

// sees reports whether a source showed connections.
func (o *Observation) sees() bool { return o.Observer != "" && !o.Blind }

// Stop is all that is known about a stop at the moment Now.
type Stop struct {
	Terms
	stop.Record
	Now          time.Time
	InHold       Observation // from the last sample before the stop signal was sent
	Latest       Observation // from the last sample
	ShellDropped sig.Signal  // a signal that the command, a shell, did not forward; 0: none
	OtherProgram string      // the command's program if its preset does not match; "": it does, or is not known
	OnStopUntil  time.Time   // when --on-stop ended, or was killed at the ceiling; zero: not yet
}

// Announcement returns the line for the trigger: what will happen.
func (s *Stop) Announcement() []string {
	hold := s.plannedHold()
	next := say("holding %s, then %v; a second %v ends the wait", hold, s.Steps, s.Trigger)
	switch {
	case s.Hook:
		next = say("holding %s; TERM ends the wait", hold)
	case !s.Gate.Holds():
		next = say("no hold; now %v", s.Steps)
	}
	assumed := s.GraceCaveat == "" && s.GraceAssumed && s.Gate.Conditional()
	p := phrases{next}
	p.add(s.KillAfter > 0, "KILL %s after the first signal", stop.FormatDuration(s.KillAfter))
	p.add(s.GraceCaveat != "", "%v", s.GraceCaveat)
	p.add(assumed, "grace period assumed: %s, as in %s", stop.FormatDuration(s.Grace), s.AssumedFrom)
	return []string{s.trigger() + ": " + strings.Join(p, "; ")}
}

// plannedHold returns the hold in words: "2 s", "up to 19 s until quiet".
func (s *Stop) plannedHold() string {
	var until phrases
	until.add(s.Gate.Adaptive(), "%v", s.Gate.Until)
	for _, path := range s.WaitGone {
		until.add(true, "%s is gone", pathWord(path))
	}
	until.add(s.Gate.OnStop, "--on-stop has ended")
	floor, ceiling := stop.FormatDuration(s.Gate.Floor), stop.FormatDuration(s.Gate.Ceiling)
	switch {
	case len(until) == 0:
		return floor
	case s.Gate.Floor == 0:
		return say("up to %s until %s", ceiling, strings.Join(until, " and "))
	}
	return say("%s to %s until %s", floor, ceiling, strings.Join(until, " and "))
}

// Conclusion returns the lines for the end, or for the moment at which the stop signal has
// been sent.
func (s *Stop) Conclusion() []string {
	hasExited := !s.ExitedAt.IsZero()
	lingered := hasExited && s.Linger > 0 && s.Now.Sub(s.ExitedAt) >= 100*time.Millisecond
	course := s.course()
	course.add(hasExited, "%v at +%s", s.exit(), s.when(s.ExitedAt))
	course.add(lingered, "its descendants at +%s", s.when(s.Now))
	outcome := strings.Join(course, ", ")
	if hasExited || s.Hook {
		outcome = s.ofGrace(outcome)
	}
	if risk := s.atRisk(); len(risk) > 0 {
		outcome = strings.Join(risk, ", ") + ": " + outcome
	}
	if s.InHold.sees() {
		outcome += "; " + strings.Join(s.arrivals(), "; ")
	}
	return s.lines(outcome)
}

// Late returns the lines for one second before the end of the grace period, if the command
// or its descendants still run.
func (s *Stop) Late() []string {
	what := "the command still runs"
	switch {
	case s.Ended == "":
		what = "still holding"
	case !s.ExitedAt.IsZero():
		what = s.exit() + ", and its descendants still run"
	}
	outcome := s.ofGrace(say("%s at +%s", what, s.when(s.Now)))
	if s.Latest.sees() {
		outcome += say(", %d in flight", s.Latest.InFlight+s.Latest.LeftOut.GivenUp)
	}
	if s.Ended != "" {
		outcome += ": " + strings.Join(s.course(), ", ")
	}
	return s.lines(outcome)
}

// lines returns the trigger and the outcome, what kept the hold up, and the suggestion.
func (s *Stop) lines(outcome string) []string {
	cause, _ := s.prolonged()
	suggestion := s.suggestion()
	lines := phrases{s.trigger() + ": " + outcome}
	lines.add(cause != "", "held by %s", cause)
	lines.add(suggestion != "", "suggestion: %s", suggestion)
	return lines
}

// trigger returns the name of the signal that began the stop, "hold" for a hook.
func (s *Stop) trigger() string {
	if s.Trigger == 0 {
		return "hold"
	}
	return s.Trigger.String()
}

// atRisk returns what the stop signal may have cut, and what could not be seen. A request
// that the hold has given up on is not in flight.
func (s *Stop) atRisk() (p phrases) {
	o := &s.InHold
	if o.sees() {
		inFlight, silent := s.inFlight(), o.LeftOut.GivenUp
		unknown := inFlight == 0 && o.InFlightUnknown && o.Open > 0
		p.add(inFlight > 0, "%s in flight", counted(inFlight, "request"))
		p.add(unknown, "in flight unknown")
		p.add(inFlight+silent == 0 && !unknown, "nothing in flight")
		p.add(silent > 0, "%s given up, silent for %s", counted(silent, "request"),
			stop.FormatDuration(s.TrafficConfig.MaxSilence))
		p.add(o.InUse > 0, "%s in use", counted(o.InUse, "connection"))
		p.add(o.InUse == 0 && o.Open > 0, "%s open", counted(o.Open, "connection"))
	}
	p.add(len(o.UDPPorts) > 0, "UDP on %s cannot be seen", PortList(o.UDPPorts))
	p.add(o.Observer == "" && len(o.Unseen) > 0, "%s cannot be seen", strings.Join(o.Unseen, " and "))
	p.add(o.Blind, "the traffic could not be seen")
	return p
}

// inFlight returns the number of requests in flight when the hold ended, by the search for a
// lull if there was one.
func (s *Stop) inFlight() int {
	if s.Lull.Found || s.Lull.InFlight > 0 {
		return s.Lull.InFlight
	}
	return s.InHold.InFlight
}

// reasons has the reasons for the end of a hold that are not spelled as in JSON.
var reasons = map[stop.Reason]string{
	stop.SecondSignal: "second signal",
	stop.Interrupt:    "INT arrived",
	stop.ChildExit:    "the command exited by itself",
	stop.NoListener:   "nothing listens",
	stop.NoProgress:   "the server hangs",
	stop.UDP:          "UDP alone",
	stop.Unobserved:   "ceiling",
}

// course returns how long the hold was and why it ended, and the signals that were sent.
// The first signal has no time if the end of the hold is its time.
func (s *Stop) course() (p phrases) {
	var signals phrases
	for i, sent := range s.Sent {
		atEnd := i == 0 && sent.At.Sub(s.EndedAt) < 100*time.Millisecond
		signals.add(atEnd, "%v", sent.Signal)
		signals.add(!atEnd, "%v at +%s", sent.Signal, s.when(sent.At))
	}
	why := cmp.Or(reasons[s.Ended], string(s.Ended))
	if s.Lull.Found {
		why += ", at a lull"
	}
	holds := s.Gate.Holds() || s.Hook
	p.add(!holds, "no hold")
	p.add(holds, "held %s (%s)", s.when(s.EndedAt), why)
	p.add(len(signals) > 0, "sent %s", strings.Join(signals, ", "))
	return p
}

// exit returns how the command ended.
func (s *Stop) exit() string {
	signal := s.Exit.Signal
	code := 128 + int(signal)
	ours := slices.ContainsFunc(s.Sent, func(sent stop.Sent) bool { return sent.Signal == signal })
	switch {
	case signal == 0:
		return say("exited %d", s.Exit.Code)
	case signal == sig.KILL && ours:
		return say("killed by lameduck's %v (%d)", signal, code)
	case ours || asked.Has(signal):
		return say("ended by %v (%d)", signal, code)
	}
	return say("killed by %v (%d)", signal, code)
}

// asked are the signals by which somebody asks a program to end. Other signals that lameduck
// has not sent kill: a KILL, or a crash.
var asked = sig.SetOf(sig.HUP, sig.INT, sig.QUIT, sig.TERM, sig.USR1, sig.USR2)

// ofGrace adds the grace period to an outcome.
func (s *Stop) ofGrace(outcome string) string {
	outcome += " of " + stop.FormatDuration(s.Grace)
	if s.GraceAssumed {
		outcome += " (assumed)"
	}
	return outcome
}

// arrivals returns the connections since the trigger, what did not count, and the source of
// these figures if it is not the best one.
func (s *Stop) arrivals() (p phrases) {
	o := &s.InHold
	came := o.LastNew.After(s.TriggeredAt)
	number := o.Accepted
	if came {
		number = max(number, 1) // perhaps too short to be counted
	}
	text := counted(number, "new connection")
	if o.More || number > o.Accepted {
		text = "at least " + text
	}
	if o.Accepted > 0 {
		text += " " + Sparkline(o.PerSecond)
	}
	if came {
		text += ", the last at +" + s.when(o.LastNew)
	}
	var kinds phrases
	kinds.add(o.LeftOut.Bare > 0, "%d without a byte", o.LeftOut.Bare)
	for _, c := range o.Patterns {
		kinds.add(c.LeftOut, "%s of %v every %s", counted(c.Count, "probe"), c.Peer, seconds(c.Period))
	}
	p = phrases{text}
	p.add(len(kinds) > 0, "not counted: %s", strings.Join(kinds, ", "))
	p.add(o.InFlightUnknown, "source: %s", o.Observer)
	return p
}

// after returns the time from the trigger to at.
func (s *Stop) after(at time.Time) time.Duration { return at.Sub(s.TriggeredAt) }

// when returns the time from the trigger to at in words.
func (s *Stop) when(at time.Time) string { return seconds(s.after(at)) }

// seconds formats a measured time: "2.3 s".
func seconds(d time.Duration) string { return say("%.1f s", d.Seconds()) }

// counted returns a number of things: "1 request", "2 requests".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return say("%d %ss", n, noun)
}

// maxListed is the number of ports that PortList names: media servers have thousands.
const maxListed = 8

// PortList returns ports in words: "53, 8125", or the first ones "and 9992 more".
func PortList(ports []uint16) string {
	var list phrases
	for _, port := range ports[:min(len(ports), maxListed)] {
		list.add(true, "%v", port)
	}
	text := strings.Join(list, ", ")
	if more := len(ports) - maxListed; more > 0 {
		text += say(" and %d more", more)
	}
	return text
}
