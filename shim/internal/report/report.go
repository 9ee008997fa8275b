package report

import (
	"fmt"
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
	gate := &s.StopConfig.Gate
	line := fmt.Sprintf("%s: holding %s", s.trigger(), s.spell(gate.String()))
	switch {
	case s.Hook:
		line += "; TERM skips"
	case !gate.Holds():
		line = fmt.Sprintf("%s: no hold; now %v", s.trigger(), s.Steps)
	default:
		line += fmt.Sprintf(", then %v; a second %v skips", s.Steps, s.Trigger)
	}
	if s.StopConfig.KillAfter > 0 {
		line += fmt.Sprintf("; KILL %s after the first signal", stop.FormatDuration(s.StopConfig.KillAfter))
	}
	if s.Caveat != "" {
		line += "; " + s.Caveat
	}
	return line
}

// Conclusion returns the line for the end: what happened.
func (s *Stop) Conclusion() string {
	parts := append([]string{s.held()}, s.observed()...)
	switch {
	case !s.Hook:
		parts = append(parts, s.sent(), s.exitWithTime())
	case s.lull() != "":
		parts = append(parts, s.lull())
	}
	return s.withSuggestion(append(parts, fmt.Sprintf("%s of the %s used", seconds(s.after(s.Now)), s.grace())))
}

// Progress returns the line for the termination log when the stop signal has been sent.
func (s *Stop) Progress() string {
	parts := append([]string{s.held()}, s.observed()...)
	return strings.Join(append(parts, s.sent()), "; ")
}

// Late returns the line for one second before the end of the grace period, if the command
// or its descendants still run.
func (s *Stop) Late() string {
	at := s.after(s.Now)
	switch {
	case !s.ExitedAt.IsZero():
		return s.withSuggestion([]string{s.held(), s.sent(), s.exitWithTime(), fmt.Sprintf("its descendants still run at +%s of the %s", seconds(at), s.grace())})
	case s.Hook:
		return s.withSuggestion([]string{s.held(), fmt.Sprintf("%s of the %s left", seconds(s.StopConfig.Grace-at), s.grace()) + s.inFlightNow()})
	}
	return s.withSuggestion([]string{s.held(), s.sent(), fmt.Sprintf("the command still runs at +%s of the %s", seconds(at), s.grace()) + s.inFlightNow()})
}

// NoHold returns the line for a command that ended after a signal that starts no stop
// sequence, although a hold is configured: the signal may be the image's STOPSIGNAL.
func (s *Stop) NoHold() string {
	return fmt.Sprintf(s.spell("no hold took place: %v was passed on, and %s; if %v is how this container is stopped, give --stop-signal=%v"),
		s.Forwarded, s.exit(), s.Forwarded, s.Forwarded)
}

// withSuggestion joins the parts of a line, with the suggestion as the last part.
func (s *Stop) withSuggestion(parts []string) string {
	if suggestion := s.suggestion(); suggestion != "" {
		parts = append(parts, suggestion)
	}
	return strings.Join(parts, "; ")
}

// held returns how long the hold was, or has been by now.
func (s *Stop) held() string {
	switch {
	case !s.StopConfig.Gate.Holds():
		return s.trigger() + ": no hold"
	case s.Ended == "":
		return fmt.Sprintf("%s: held %s so far", s.trigger(), seconds(s.after(s.Now)))
	}
	return fmt.Sprintf("%s: held %s (%s)", s.trigger(), seconds(s.after(s.EndedAt)), s.Ended)
}

// sees reports whether a source showed connections.
func (o *Observation) sees() bool { return o.Observer != "" && !o.Blind }

// observed returns what the samples in the hold showed, their source, and what prolonged
// the hold.
func (s *Stop) observed() (parts []string) {
	if s.InHold.sees() {
		parts = s.traffic()
	} else {
		parts = s.unseen()
	}
	if cause := s.prolonged(); cause.by != "" && !cause.ordinary {
		parts = append(parts, cause.by)
	}
	return parts
}

// unseen returns the traffic that could not be observed.
func (s *Stop) unseen() (parts []string) {
	o := &s.InHold
	if len(o.UDPPorts) > 0 {
		parts = append(parts, fmt.Sprintf("UDP, on %s, cannot be seen", PortList(o.UDPPorts)))
	}
	if o.Observer == "" && len(o.Unseen) > 0 {
		parts = append(parts, strings.Join(o.Unseen, " and ")+" cannot be seen")
	}
	if o.Blind {
		parts = append(parts, "the traffic could not be seen")
	}
	return parts
}

// traffic returns what the samples in the hold showed, and their source.
func (s *Stop) traffic() []string {
	o := &s.InHold
	parts := s.unseen()
	if len(o.LatePorts) > 0 {
		parts = append(parts, "opened during the hold: "+PortList(o.LatePorts))
	}
	parts = append(parts, s.arrivals()+s.lastByte(), s.atRisk(), fmt.Sprintf("seen by %s, %s", o.Observer, o.Scope))
	if leftOut := s.leftOut(); leftOut != "" {
		parts = append(parts, leftOut)
	}
	return parts
}

// arrivals returns the connections since the trigger, and the time of the last that counts.
// Connections too short to be counted may still have been noticed.
func (s *Stop) arrivals() string {
	t := &s.InHold.Traffic
	lastNew := s.lastNew()
	came := lastNew.After(s.TriggeredAt)
	switch {
	case t.Accepted == 0 && came:
		return "new connections, too short to be counted, the last at +" + seconds(s.after(lastNew))
	case t.Accepted == 0 && t.More:
		return "new connections, too short to be counted"
	case t.Accepted == 0:
		return "0 new connections"
	}
	text := counted(t.Accepted, "new connection") + " " + Sparkline(t.PerSecond)
	if t.More {
		text = "at least " + text
	}
	bare := s.bare()
	probes, _ := s.probesCounted()
	someLeftOut := bare > 0 || probes > 0
	switch {
	case bare == t.Accepted:
		return text + ", without a byte"
	case bare > 0:
		text += fmt.Sprintf(", %d without a byte", bare)
	}
	switch {
	case came && someLeftOut:
		text += ", the last that counts at +" + seconds(s.after(lastNew)) + s.lastNewPeer()
	case came:
		text += ", the last at +" + seconds(s.after(lastNew)) + s.lastNewPeer()
	case someLeftOut:
		text += ", none counts"
	}
	return text
}

// lastNewPeer returns the peer of the last new connection that counts, if new connections
// prolonged a hold that ended by its condition, as the end of a part; or "".
func (s *Stop) lastNewPeer() string {
	cause := s.prolonged()
	if !cause.ordinary || s.InHold.Traffic.Cause.Kind != traffic.NewConnections {
		return ""
	}
	return withPeer(" from ", cause.peer)
}

// lastByte returns when the last byte moved, as the end of a part, or "".
func (s *Stop) lastByte() string {
	at := s.InHold.Traffic.LastByte
	if !at.After(s.TriggeredAt) {
		return ""
	}
	return ", the last byte at +" + seconds(s.after(at))
}

// atRisk returns the connections that the stop signal may have cut.
func (s *Stop) atRisk() string {
	t := &s.InHold.Traffic
	text := fmt.Sprintf("%d open at the end", t.Open)
	inFlight, givenUp := s.inFlight()
	switch {
	case s.InHold.InFlightUnknown && t.Open > 0 && inFlight == 0:
		text += ", in flight unknown"
	case t.Open > 0 || inFlight > 0:
		text += fmt.Sprintf(", %d in flight", inFlight)
	}
	if givenUp > 0 {
		text += s.givenUp(givenUp)
	}
	return text
}

// givenUp returns n requests that the hold has given up, as the end of a part. The silence
// is the silence of each request: other connections may have moved bytes since.
func (s *Stop) givenUp(n int) string {
	peer := s.InHold.Traffic.LeftOut.GivenUpPeer
	silent := "silent for " + stop.FormatDuration(s.TrafficConfig.MaxSilence)
	if n == 1 {
		return fmt.Sprintf(", 1 request%s given up, %s", withPeer(" of ", peer), silent)
	}
	return fmt.Sprintf(", %d requests given up, %s%s", n, silent, withPeer(", one of ", peer))
}

// inFlight returns the number of requests in flight, and of requests that had been
// silent for so long that the hold had given up on the requests. The search for a lull
// gives up on such requests too; a plain delay without a search gives no request up.
func (s *Stop) inFlight() (inFlight, givenUp int) {
	t := &s.InHold.Traffic
	searched := s.lullSought() && !s.Lull.TooMany
	switch {
	case searched && s.Lull.Found:
		return 0, t.LeftOut.GivenUp
	case searched && s.Lull.InFlight > 0:
		return s.Lull.InFlight, t.LeftOut.GivenUp
	case !s.adaptive():
		return t.InFlight + t.LeftOut.GivenUp, 0
	}
	return t.InFlight, t.LeftOut.GivenUp
}

// inFlightNow returns the requests in flight at the last sample, while the hold lasts or
// since, as the end of a line.
func (s *Stop) inFlightNow() string {
	latest := s.AfterHold
	if latest == nil || !latest.sees() {
		latest = &s.InHold
		if s.Ended != "" || !latest.sees() {
			return ""
		}
	}
	return fmt.Sprintf(", %d in flight", latest.Traffic.InFlight+latest.Traffic.LeftOut.GivenUp)
}

// sent returns the signals that were sent, with their times. The search for a lull is told
// with the first signal.
func (s *Stop) sent() string {
	if len(s.Sent) == 0 {
		return "nothing sent"
	}
	var steps []string
	for _, sent := range s.Sent {
		steps = append(steps, fmt.Sprintf("%v at +%s", sent.Signal, seconds(s.after(sent.At))))
	}
	if lull := s.lull(); lull != "" {
		steps[0] += " (" + lull + ")"
	}
	return "sent " + strings.Join(steps, ", ")
}

// exit returns how the command ended. A KILL that lameduck sent is called lameduck's.
func (s *Stop) exit() string {
	if s.Exit.Signal == 0 {
		return fmt.Sprintf("the command exited %d", s.Exit.Code)
	}
	sender := ""
	if n := len(s.Sent); s.Exit.Signal == sig.KILL && n > 0 && s.Sent[n-1].Signal == sig.KILL {
		sender = "lameduck's "
	}
	return fmt.Sprintf("the command was killed by %s%v (%d)", sender, s.Exit.Signal, 128+int(s.Exit.Signal))
}

// exitWithTime returns how the command ended, and when.
func (s *Stop) exitWithTime() string {
	return fmt.Sprintf("%s at +%s", s.exit(), seconds(s.after(s.ExitedAt)))
}

// grace returns the grace period in words.
func (s *Stop) grace() string {
	if s.GraceAssumed {
		return "assumed " + stop.FormatDuration(s.StopConfig.Grace) + " grace period"
	}
	return stop.FormatDuration(s.StopConfig.Grace) + " grace period"
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
