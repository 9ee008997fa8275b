package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/letgo"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Observation is what a sample of the traffic shows; package observe fills it in. The zero value shows
// nothing.
type Observation struct {
	traffic.Sample
	Asked        letgo.Figures // the kept connections that were closed
	Observer     string        // the source of the sample; "": no TCP port counts
	ScopeName    string        // how the listeners were found, as JSON has it
	UDPPorts     []uint16      // ports on which the container receives UDP
	LatePorts    []uint16      // ports opened by the container since the trigger
	Unseen       []string      // where else the container serves and cannot be observed, in words
	PathsPresent []string      // existing paths of --wait-gone
	URLState     string        // what --wait-url did last, as in "answers 503"; "": it is not waited for
}

// Values of Observation.Observer.
const (
	SockDiag = "sock_diag" // sock_diag(7), the best observer
	ProcNet  = "/proc/net" // tables and counters; requests in flight are unknown
	NoSource = "none"      // no source can be read

	Datagrams = "/proc/net/snmp" // for UDP alone, a counter of the network namespace
)

// sees reports whether a source showed connections.
func (o *Observation) sees() bool { return o.Observer == SockDiag || o.Observer == ProcNet }

// Stop is all that is known about a stop at the moment Now.
type Stop struct {
	*plan.Plan
	stop.Record
	Now          time.Time
	InHold       Observation // from the last sample before the stop signal was sent
	Latest       Observation // from the last sample
	SentTo       []Worker    // the processes below the command that the first signal went to; nil: to the command
	OtherProgram string      // the command's program if the preset's server was not found; "": it was
	Told         sig.Signal  // the signal of --on-stop that was sent when the hold began; 0: none
	OnStopUntil  time.Time   // when --on-stop ended, or was killed at the ceiling; zero: not yet
	Deaf         string      // the program of PID 1, if a hook holds beside it and it does not handle TERM
	Untold       []Worker    // processes below the command that nobody has told to end, while it still ran
	Workers      []Worker    // processes at work that the command has left behind, and lameduck waited for
}

// Worker is a process below the command, or one that the command has left behind.
type Worker struct {
	Program string
	PID     int
	EndedAt time.Time // zero: not yet
}

// Announcement returns the line for the trigger: what will happen.
func (s *Stop) Announcement() string {
	gate := &s.Stop.Gate
	course, holds := s.hold(string(gate.Until)), gate.Holds()
	if len(s.Steps) > 0 {
		course += ", then " + s.Steps.String()
	}
	var p phrases
	p.add(s.Told != 0, sentSignals, s.Told)
	p.add(holds, "holding %s", course)
	p.add(!holds, "no hold; now %v", s.Steps)
	p.add(s.Hook, "TERM ends the wait")
	p.add(holds && !s.Hook, "a second %v ends the wait", s.Trigger)
	p.add(s.KillAfter > 0, "KILL %s after the first signal", s.KillAfter)
	p.about(s.GraceCaveat, "%s")
	p.add(s.GraceCaveat == "" && s.AssumedFrom != "" && gate.Conditional(),
		"grace period assumed: %s, as in %s", s.Stop.Grace, s.AssumedFrom)
	return s.trigger() + ": " + strings.Join(p, "; ")
}

// hold returns the hold in words: "2 s", "up to 19 s until quiet". The condition is that of the
// traffic, in words.
func (s *Stop) hold(condition string) string {
	until := phrases{}
	until.about(condition, "%s")
	for _, path := range s.WaitGone {
		until.say("%s is gone", pathWord(path))
	}
	if s.WaitURL != nil {
		until.say("%s answers 200", s.WaitURL.URL)
	}
	gate := &s.Stop.Gate
	until.add(gate.OnStop, "--on-stop has ended")
	switch text := strings.Join(until, " and "); {
	case text == "":
		return InWords("%s", gate.Floor)
	case gate.Floor == 0:
		return InWords("up to %s until %s", gate.Ceiling, text)
	default:
		return InWords("%s to %s until %s", gate.Floor, gate.Ceiling, text)
	}
}

// Conclusion returns the lines for the end, or for the moment at which the stop signal has
// been sent.
func (s *Stop) Conclusion() []string {
	hasExited := !s.ExitedAt.IsZero()
	course := s.course()
	course.add(hasExited, atTime, s.exit(), s.when(s.ExitedAt))
	after := s.afterExit()
	outcome := strings.Join(append(course, after...), ", ")
	if len(after) > 0 || s.Hook && len(s.Sent)+s.Refused > 0 {
		outcome = s.atNow(outcome)
	}
	if hasExited || s.Hook {
		outcome = ofGrace(outcome, s.Plan)
	}
	if risk := s.atRisk(); risk != "" {
		outcome = risk + ": " + outcome
	}
	if s.InHold.sees() {
		outcome += "; " + strings.Join(s.arrivals(), "; ")
	}
	return s.lines(outcome)
}

// Continuation returns the line for a hold that goes on: for whom.
func (s *Stop) Continuation() string {
	line := s.trigger() + ": " + s.atNow(stillHolding)
	if risk := s.atRisk(); risk != "" {
		line += ": " + risk
	}
	if cause, _ := s.prolonged(); cause != "" {
		line += "; " + InWords(heldBy, cause)
	}
	return line
}

// Late returns the lines for one second before the end of the grace period, if the command
// or its descendants still run.
func (s *Stop) Late() []string {
	what := "the command still runs"
	switch _, atWork := s.workers(); {
	case s.Ended == "":
		what = stillHolding
	case s.Hook:
		what = "PID 1 still runs"
	case len(atWork) > 0:
		what = s.exit() + ", and " + Workers(atWork) + " is still at work"
	case !s.ExitedAt.IsZero():
		what = s.exit() + ", and its descendants still run"
	}
	outcome := ofGrace(s.atNow(what), s.Plan)
	if s.Latest.sees() {
		outcome = InWords("%s, %d in flight", outcome, s.Latest.InFlight+s.Latest.LeftOut.GivenUp)
	}
	if s.Ended != "" {
		outcome += ": " + strings.Join(s.course(), ", ")
	}
	return s.lines(outcome)
}

// lines returns the trigger and the outcome, what kept the hold up, and the suggestion.
func (s *Stop) lines(outcome string) []string {
	cause, _ := s.prolonged()
	lines := phrases{s.trigger() + ": " + outcome}
	lines.about(cause, heldBy)
	lines.about(s.suggestion(), "suggestion: %s")
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
func (s *Stop) atRisk() string {
	p, o := phrases{}, &s.InHold
	if o.sees() {
		inFlight, silent := s.inFlight(), o.LeftOut.GivenUp
		unknown := inFlight == 0 && o.Observer == ProcNet && o.Open > 0
		p.count(inFlight, "request", "%s in flight")
		p.add(unknown, "in flight unknown")
		cut := s.cutStreams()
		p.countCut(cut, "stream", "streams")
		p.count(o.Streams-cut, "stream", "%s open")
		p.add(inFlight+silent+o.Streams == 0 && !unknown, "nothing in flight")
		p.add(silent > 0, "%s given up, silent for %s", counted(silent, "request"), s.Traffic.MaxSilence)
		if o.InUse == 0 {
			p.count(o.Open, "connection", "%s open")
		} else if o.InUse > o.Streams {
			p.count(o.InUse, "connection", "%s in use")
		}
	}
	udp := "UDP on %s cannot be seen"
	if o.Observer == Datagrams {
		udp = "UDP on %s"
	}
	p.about(PortList(o.UDPPorts), udp)
	p.add(!o.sees() && len(o.Unseen) > 0, "%s cannot be seen", strings.Join(o.Unseen, " and "))
	p.add(o.Observer == NoSource, "the traffic could not be seen")
	return strings.Join(p, ", ")
}

// cutStreams returns how many of the streams at the end of the hold the command's end has cut: a command that a
// signal ends, or that ends at once, finishes none that are left. The latest sample may show what was left,
// or what is after the end.
func (s *Stop) cutStreams() int {
	atOnce := !s.ExitedAt.IsZero() && len(s.Sent) > 0 && s.ExitedAt.Sub(s.Sent[0].At) < soon
	switch latest := &s.Latest; {
	case s.Exit.Signal == 0 && !atOnce, latest.sees() && s.ExitedAt.Sub(latest.ServedAt) > 2*time.Second:
		return 0
	case latest.sees() && !latest.NoSockets:
		return min(s.InHold.Streams, latest.Streams)
	}
	return s.InHold.Streams
}

// inFlight returns the number of requests in flight when the hold ended, by the search for a
// lull if there was one.
func (s *Stop) inFlight() int {
	if s.Lull.Found || s.Lull.InFlight > 0 {
		return s.Lull.InFlight
	}
	return s.InHold.InFlight
}

// course returns how long the hold was and why it ended, and the signals that were sent.
// The first signal has no time if the end of the hold is its time.
func (s *Stop) course() (p phrases) {
	var signals phrases
	for i, sent := range s.Sent {
		atEnd := i == 0 && sent.At.Sub(s.EndedAt) < soon
		name := sent.Signal.String()
		if i == 0 && len(s.SentTo) > 0 {
			name += " to " + Workers(s.SentTo)
		}
		signals.add(atEnd, "%s", name)
		signals.add(!atEnd, atTime, name, s.when(sent.At))
	}
	why := cmp.Or(reasons[s.Ended], string(s.Ended))
	if s.Ended == stop.ChildExit && s.signaledByOthers() {
		why = "somebody else told the command"
	}
	if s.Lull.Found {
		why += ", at a lull"
	}
	holds := s.Stop.Gate.Holds()
	p.add(s.Told != 0, "sent %s at the start", s.Told)
	p.add(!holds, "no hold")
	p.add(holds, "held %s (%s)", s.when(s.EndedAt), why)
	p.about(strings.Join(signals, ", "), sentSignals)
	p.count(s.Refused, "signal", "%s refused by the kernel")
	return p
}

// exit returns how the command ended.
func (s *Stop) exit() string {
	signal := s.Exit.Signal
	by := "ended by"
	switch {
	case signal == 0:
		return InWords("exited %d", s.Exit.Code)
	case signal == sig.KILL && slices.ContainsFunc(s.Sent, func(sent stop.Sent) bool { return sent.Signal == signal }):
		by = "killed by lameduck's"
	case signal == sig.KILL:
		by = "killed by"
	}
	return InWords("%s %v (%d)", by, signal, s.ExitStatus())
}

// ofGrace adds the grace period to an outcome.
func ofGrace(outcome string, p *plan.Plan) string { return outcome + " of " + graceInWords(p) }

func graceInWords(p *plan.Plan) string {
	text := InWords("%s", p.Stop.Grace)
	if p.AssumedFrom != "" {
		text += " (assumed)"
	}
	return text
}

// arrivals returns the connections since the trigger, what did not count, and the source of
// these figures if it is not the best one.
func (s *Stop) arrivals() (p phrases) {
	o, a := &s.InHold, &s.InHold.Asked
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
	var asked phrases
	asked.count(a.Closed, "kept connection", "%s closed while idle")
	asked.add(a.Notified > 0, "GOAWAY sent on %s to port %s",
		counted(a.Notified, "connection"), PortList(a.GoawayPorts))
	asked.add(a.CameBack > 0, "%d came back", a.CameBack)
	asked.add(a.InPod > 0 && a.Notified > 0,
		"%d from loopback: a proxy in the pod, whose own clients GOAWAY does not reach", a.InPod)
	asked.about(hindrances[a.Hindrance], "no kept connection closed: %s")
	p = phrases{text}
	p.about(strings.Join(asked, ", "), "%s")
	p.about(strings.Join(kinds, ", "), "not counted: %s")
	p.add(o.Observer == ProcNet, "source: %s", o.Observer)
	return p
}

// hindrances are why no kept connection was closed, in words.
var hindrances = map[letgo.Hindrance]string{
	letgo.FarAway:        "the clients are too far away",
	letgo.FewCycles:      "too few requests so far",
	letgo.SeveralAtATime: "requests came several at a time, or answers in parts",
	letgo.NeverIdle:      "none was idle for long enough",
}

// after returns the time from the trigger to at.
func (s *Stop) after(at time.Time) time.Duration { return at.Sub(s.SignaledAt()) }

// when returns the time from the trigger to at in words.
func (s *Stop) when(at time.Time) string { return seconds(s.after(at)) }

// atNow adds the present moment to what has happened.
func (s *Stop) atNow(what string) string { return InWords(atTime, what, s.when(s.Now)) }

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
	list := fmt.Sprint(ports[:min(len(ports), maxListed)])
	text := strings.ReplaceAll(strings.Trim(list, "[]"), " ", ", ")
	if more := len(ports) - maxListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
