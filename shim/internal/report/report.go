package report

import (
	"cmp"
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
	Hook          bool     // a preStop hook holds beside PID 1, and sends no signal
	WaitGone      []string // the paths of --wait-gone
	GraceAssumed  bool     // the grace period was not given
	AssumedFrom   string   // where the assumed grace period comes from: "Kubernetes"
	GraceCaveat   string   // why the grace period may be too short; "": long enough
	Server        string   // the name of the command's preset; "": unknown
	ClosesKept    bool     // at its signal the server closes kept connections
	Caveat        string   // what a graceful stop of the server takes, as advice; ""
}

// Observation is the result of one sample of the traffic.
type Observation struct {
	Traffic         traffic.Summary
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
	InHold       Observation  // from the last sample before the stop signal was sent
	AfterHold    *Observation // from the last sample since; nil: none
	ShellDropped sig.Signal   // a signal that the command, a shell, did not forward; 0: none
	OtherProgram string       // the command's program if its preset does not match; "": it does, or is not known
	OnStopUntil  time.Time    // when --on-stop ended, or was killed at the ceiling; zero: not yet
}

// Announcement returns the line for the trigger: what will happen.
func (s *Stop) Announcement() []string {
	gate := &s.StopConfig.Gate
	hold, grace := s.plannedHold(), stop.FormatDuration(s.StopConfig.Grace)
	var p phrases
	p.add(!gate.Holds(), noHoldNow, s.Steps)
	p.add(gate.Holds() && s.Hook, holding, hold)
	p.add(gate.Holds() && !s.Hook, holdingThen, hold, s.Steps)
	p.add(s.Hook, hookEndsEarly)
	p.add(gate.Holds() && !s.Hook, secondEndsEarly, s.Trigger)
	p.add(s.StopConfig.KillAfter > 0, killAfter, stop.FormatDuration(s.StopConfig.KillAfter))
	p.add(s.GraceCaveat != "", asGiven, s.GraceCaveat)
	p.add(s.GraceCaveat == "" && s.GraceAssumed && gate.MaxHold() > gate.Floor, assumedAsIn, grace, s.AssumedFrom)
	return []string{s.trigger() + ": " + p.join("; ")}
}

// plannedHold returns the hold in words: "2 s", "up to 19 s until quiet".
func (s *Stop) plannedHold() string {
	gate := &s.StopConfig.Gate
	var until phrases
	until.add(s.adaptive(), asGiven, gate.Until)
	for _, path := range s.WaitGone {
		until.add(true, pathGone, pathWords(path))
	}
	until.add(gate.OnStop, onStopEnded)
	floor, ceiling := stop.FormatDuration(gate.Floor), stop.FormatDuration(gate.Ceiling)
	switch {
	case len(until) == 0:
		return floor
	case gate.Floor == 0:
		return holdUpTo.with(ceiling, until.join(" and "))
	}
	return holdFromTo.with(floor, ceiling, until.join(" and "))
}

// Conclusion returns the lines for the end.
func (s *Stop) Conclusion() []string {
	exit := atTime.with(s.exit(), s.when(s.ExitedAt))
	if s.StopConfig.Linger > 0 && s.Now.Sub(s.ExitedAt) >= 100*time.Millisecond {
		exit = descendantsEnd.with(exit, s.when(s.Now))
	}
	var p phrases
	p.add(!s.Hook, ofGrace, exit, s.grace())
	return s.lines(s.outcome(p))
}

// Progress returns the lines for the termination log when the stop signal has been sent.
func (s *Stop) Progress() []string { return s.lines(s.outcome(nil)) }

// Late returns the lines for one second before the end of the grace period, if the command
// or its descendants still run.
func (s *Stop) Late() []string {
	at, now, course := s.when(s.Now), "", s.course().join(", ")
	latest := s.AfterHold
	if s.Ended == "" {
		latest = &s.InHold
	}
	if latest != nil && latest.sees() {
		now = inFlightNow.with(latest.Traffic.InFlight + latest.Traffic.LeftOut.GivenUp)
	}
	switch {
	case s.Ended == "" && s.StopConfig.Gate.Holds():
		return s.lines(stillHolding.with(at, s.grace(), now))
	case !s.ExitedAt.IsZero():
		return s.lines(descendantsRun.with(s.exit(), at, s.grace(), course))
	}
	return s.lines(stillRuns.with(at, s.grace(), now, course))
}

// lines returns the trigger and the outcome, what kept the hold up, and the suggestion.
func (s *Stop) lines(outcome string) []string {
	cause, _ := s.prolonged()
	suggestion := s.suggestion()
	lines := phrases{s.trigger() + ": " + outcome}
	lines.add(cause != "", heldBy, cause)
	lines.add(suggestion != "", suggests, suggestion)
	return lines
}

// outcome returns the first line: what was at risk, the course of the stop up to its end,
// and the connections.
func (s *Stop) outcome(end phrases) string {
	line := append(s.course(), end...).join(", ")
	if risk := s.atRisk(); len(risk) > 0 {
		line = risk.join(", ") + ": " + line
	}
	if s.InHold.sees() {
		line += "; " + s.arrivals().join("; ")
	}
	return line
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
	open, kept := o.Traffic.Open, o.Traffic.InUse
	inFlight, silent := s.inFlight()
	unknown := o.InFlightUnknown && open > 0
	if !s.StopConfig.Gate.Holds() {
		return nil
	}
	if o.sees() {
		p.add(inFlight > 0, someInFlight, counted(inFlight, "request"))
		p.add(inFlight == 0 && unknown, unknownInFlight)
		p.add(inFlight == 0 && !unknown && silent == 0, nothingInFlight)
		p.add(silent > 0, givenUp, counted(silent, "request"), stop.FormatDuration(s.TrafficConfig.MaxSilence))
		p.add(kept > 0, inUse, counted(kept, "connection"))
		p.add(kept == 0 && open > 0, onlyOpen, counted(open, "connection"))
	}
	p.add(len(o.UDPPorts) > 0, udpNotSeen, PortList(o.UDPPorts))
	p.add(o.Observer == "" && len(o.Unseen) > 0, notSeen, strings.Join(o.Unseen, " and "))
	p.add(o.Blind, blind)
	return p
}

// inFlight returns the number of requests in flight when the hold ended, and of requests
// that had been silent for so long that the hold had given up on them. A plain delay gives
// no request up, but a search for a lull does.
func (s *Stop) inFlight() (inFlight, silent int) {
	t := &s.InHold.Traffic
	switch {
	case s.lull() != nil && (s.Lull.Found || s.Lull.InFlight > 0):
		return s.Lull.InFlight, t.LeftOut.GivenUp
	case !s.adaptive():
		return t.InFlight + t.LeftOut.GivenUp, 0
	}
	return t.InFlight, t.LeftOut.GivenUp
}

// lull reports whether the first signal was sent at a lull; nil: no lull was sought, or
// another event, such as a second signal, ended the hold.
func (s *Stop) lull() *bool {
	mayWait := []stop.Reason{stop.Ceiling, stop.Kept, stop.Elapsed, stop.Settled}
	if s.Lull.Sought.IsZero() || !slices.Contains(mayWait, s.Ended) || s.InHold.InFlightUnknown {
		return nil
	}
	return &s.Lull.Found
}

// course returns how long the hold was and why it ended, and the signals that were sent.
// The first signal has no time if the end of the hold is its time.
func (s *Stop) course() (p phrases) {
	var signals phrases
	for i, sent := range s.Sent {
		atEnd := i == 0 && sent.At.Sub(s.EndedAt) < 100*time.Millisecond
		signals.add(atEnd, asGiven, sent.Signal)
		signals.add(!atEnd, atTime, sent.Signal, s.when(sent.At))
	}
	why := cmp.Or(reasons[s.Ended], string(s.Ended))
	if lull := s.lull(); lull != nil && *lull {
		why = atLull.with(why)
	}
	length := s.when(s.EndedAt)
	holds := s.StopConfig.Gate.Holds()
	p.add(!holds, noHold)
	p.add(holds && !s.Hook, held, length, why)
	p.add(s.Hook, heldByHook, length, why, s.grace())
	p.add(len(signals) > 0, sentSignals, signals.join(", "))
	return p
}

// exit returns how the command ended.
func (s *Stop) exit() string {
	signal := s.Exit.Signal
	code := 128 + int(signal)
	ours := slices.ContainsFunc(s.Sent, func(sent stop.Sent) bool { return sent.Signal == signal })
	switch {
	case signal == 0:
		return exited.with(s.Exit.Code)
	case signal == sig.KILL && ours:
		return killedByUs.with(signal, code)
	case ours || asked.Has(signal):
		return endedBy.with(signal, code)
	}
	return killedBy.with(signal, code)
}

// asked are the signals by which somebody asks a program to end. Other signals that lameduck
// has not sent kill: a KILL, or a crash.
var asked = sig.SetOf(sig.HUP, sig.INT, sig.QUIT, sig.TERM, sig.USR1, sig.USR2)

// grace returns the grace period in words.
func (s *Stop) grace() string {
	grace := stop.FormatDuration(s.StopConfig.Grace)
	if s.GraceAssumed {
		return assumed.with(grace)
	}
	return grace
}

// arrivals returns the connections since the trigger, what did not count, and the source of
// these figures if it is not the best one.
func (s *Stop) arrivals() (p phrases) {
	t := &s.InHold.Traffic
	came := t.LastNew.After(s.TriggeredAt)
	text := counted(t.Accepted, "new connection")
	switch {
	case t.Accepted > 0:
		text = someNew.with(text, Sparkline(t.PerSecond))
	case came: // too short to be counted
		text = counted(1, "new connection")
	}
	if t.More || t.Accepted == 0 && came {
		text = newAtLeast.with(text)
	}
	var kinds phrases
	kinds.add(t.LeftOut.Bare > 0, withoutByte, t.LeftOut.Bare)
	for _, c := range t.Patterns {
		kinds.add(c.LeftOut, probesOf, counted(c.Count, "probe"), c.Peer, seconds(c.Period))
	}
	p.add(came, lastNewAt, text, s.when(t.LastNew))
	p.add(!came, asGiven, text)
	p.add(len(kinds) > 0, notCounted, kinds.join(", "))
	p.add(s.InHold.InFlightUnknown, source, s.InHold.Observer)
	return p
}

// after returns the time from the trigger to at.
func (s *Stop) after(at time.Time) time.Duration { return at.Sub(s.TriggeredAt) }

// when returns the time from the trigger to at in words.
func (s *Stop) when(at time.Time) string { return seconds(s.after(at)) }

// adaptive reports whether the hold depends on the traffic.
func (s *Stop) adaptive() bool { return s.StopConfig.Gate.Until != "" }

// seconds formats a measured time: "2.3 s".
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// counted returns a number of things: "1 request", "2 requests".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

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
