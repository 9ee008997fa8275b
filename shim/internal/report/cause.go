package report

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// prolonged is what kept a hold from ending as early as without traffic.
type prolonged struct {
	by    string     // in words; "": the hold was not prolonged
	hint  string     // what helps, as the end of by; ""
	brief string     // in words, without the peer, the path or the port
	peer  netip.Addr // whose traffic; invalid: no traffic, or unknown

	ordinary bool // the figures in the line say so already
}

// prolonged returns what kept the hold up: a --wait-gone path, --on-stop, or traffic. Only
// what lasted longest is named.
func (s *Stop) prolonged() prolonged {
	if s.after(s.end()) <= s.StopConfig.Gate.Floor {
		return prolonged{}
	}
	if others := s.waitedForOthers(); others != "" {
		return prolonged{by: others, brief: s.waitedBriefly(others)}
	}
	at := s.causeAt()
	if !s.trafficProlonged(at) {
		return prolonged{}
	}
	cause := &s.InHold.Traffic.Cause
	anyPeer := *cause
	anyPeer.Peer = netip.Addr{}
	found := prolonged{by: s.describe(cause, at), brief: s.describe(&anyPeer, at), peer: cause.Peer, ordinary: s.isOrdinary(cause, at)}
	if cause.Kind == traffic.Probe && s.TrafficConfig.Probes != traffic.IgnoreProbes {
		found.hint = s.spell(" see --ignore-probes")
	}
	if cause.Kind == traffic.AcceptQueue {
		found.brief = counted(max(cause.Connections, 1), "connection") + " waiting to be accepted" + s.until(at, true)
	}
	return found
}

// isOrdinary reports whether the line tells of a cause that lasted until at anyway: when
// the last new connection came, which request was given up, or which probe was left out.
func (s *Stop) isOrdinary(cause *traffic.Cause, at time.Time) bool {
	switch cause.Kind {
	case traffic.NewConnections:
		return s.conditionMet()
	case traffic.Requests:
		_, givenUp := s.inFlight()
		return s.conditionMet() && givenUp > 0 && s.recent(at)
	case traffic.Probe:
		return s.isLeftOut(cause)
	}
	return false
}

// isLeftOut reports whether the probe of a cause no longer counts.
func (s *Stop) isLeftOut(cause *traffic.Cause) (leftOut bool) {
	s.probesLeftOut(func(p *traffic.Pattern) {
		leftOut = leftOut || isProbe(cause, p)
	})
	return leftOut
}

// isProbe reports whether a cause is a health probe with the given pattern.
func isProbe(cause *traffic.Cause, p *traffic.Pattern) bool {
	return cause.Kind == traffic.Probe && p.Peer == cause.Peer && p.Received == cause.Received
}

// conditionMet reports whether the hold ended because its condition on the traffic was met.
func (s *Stop) conditionMet() bool { return s.adaptive() && s.Ended == s.StopConfig.Gate.Until }

// waitedForOthers returns the --wait-gone path or the --on-stop command that kept the hold
// up after the traffic had stopped, or "".
func (s *Stop) waitedForOthers() string {
	gate := &s.StopConfig.Gate
	paths := s.InHold.PathsPresent
	ceiling := s.Ended == stop.Ceiling
	switch {
	case ceiling && len(paths) > 0:
		return s.remaining(paths)
	case ceiling && s.onStopLasted() && !s.trafficProlonged(s.causeAt()):
		return s.spell("--on-stop ran to the end")
	case !s.outlastedTraffic():
		return ""
	case gate.OnStop && s.onStopLasted():
		return s.spell("--on-stop ran to +") + seconds(s.after(s.OnStopUntil))
	case gate.WaitGone:
		return s.spell("a path of --wait-gone was there to +") + seconds(s.after(s.end()))
	}
	return ""
}

// onStopLasted reports whether --on-stop ran until the hold ended. A hold until a
// condition on the traffic ends at the next sample.
func (s *Stop) onStopLasted() bool {
	return !s.OnStopUntil.IsZero() && s.end().Sub(s.OnStopUntil) < time.Second
}

// remaining returns the first of the --wait-gone paths that were there at the ceiling, and
// the number of others.
func (s *Stop) remaining(paths []string) string {
	first := quote.Word(fmt.Sprintf("%.200s", paths[0]))
	if len(paths) == 1 {
		return first + " was there to the end"
	}
	return first + andMore(len(paths)-1) + " were there to the end"
}

// waitedBriefly returns the words of waitedForOthers without a path.
func (s *Stop) waitedBriefly(others string) string {
	if s.Ended == stop.Ceiling && len(s.InHold.PathsPresent) > 0 {
		return s.spell("a path of --wait-gone was there to the end")
	}
	return others
}

// outlastedTraffic reports whether the hold ended by its condition, and noticeably later
// than the floor and the traffic required.
func (s *Stop) outlastedTraffic() bool {
	required := s.StopConfig.Gate.Floor
	switch {
	case s.conditionMet() && s.InHold.sees():
		required = max(required, s.silenceAfter(s.causeAt()))
	case s.adaptive() || s.Ended != stop.Elapsed:
		return false
	}
	return s.noticeable(s.after(s.end()) - required)
}

// silenceAfter returns when, from the trigger, the silence after at had lasted long enough.
func (s *Stop) silenceAfter(at time.Time) time.Duration {
	if at.Before(s.TriggeredAt) {
		at = s.TriggeredAt
	}
	return s.after(at) + s.TrafficConfig.QuietFor
}

// noticeable reports whether a hold that is longer by d deserves a cause.
func (s *Stop) noticeable(d time.Duration) bool {
	return d >= max(s.TrafficConfig.QuietFor/2, time.Second)
}

// trafficProlonged reports whether the cause of the tracker, which lasted until at, kept
// the hold up to its ceiling or at least noticeably longer than necessary without traffic.
func (s *Stop) trafficProlonged(at time.Time) bool {
	switch {
	case !s.adaptive() || !s.InHold.sees() || s.Ended == stop.NoProgress:
		return false
	case at.Before(s.TriggeredAt):
		return false
	case s.Ended == stop.Ceiling: // samples are up to a second apart
		return s.recent(at.Add(max(s.TrafficConfig.QuietFor/4, time.Second)))
	}
	required := max(s.StopConfig.Gate.Floor, s.TrafficConfig.QuietFor)
	return s.noticeable(s.silenceAfter(at) - required)
}

// causeAt returns until when the cause of the tracker lasted, the zero time without a
// cause. Connections and bytes have their own figures in the line.
func (s *Stop) causeAt() (at time.Time) {
	t := &s.InHold.Traffic
	switch t.Cause.Kind {
	case traffic.NoCause:
	case traffic.NewConnections:
		at = s.lastNew()
	case traffic.Bytes:
		at = t.LastByte
	case traffic.Requests:
		inFlight, _ := s.inFlight()
		at = s.latest(t.Cause.At, inFlight)
	case traffic.OpenConnections:
		at = s.latest(t.Cause.At, t.Open)
	default:
		at = t.Cause.At
	}
	if at.After(s.end()) {
		at = s.end()
	}
	return at
}

// latest returns at, or the end of the hold if the condition was not met and n of the cause
// are in the last sample.
func (s *Stop) latest(at time.Time, n int) time.Time {
	if n > 0 && !s.conditionMet() {
		return s.end()
	}
	return at
}

// describe returns a cause that lasted until at in words.
func (s *Stop) describe(c *traffic.Cause, at time.Time) string {
	t := &s.InHold.Traffic
	switch c.Kind {
	case traffic.NewConnections:
		connections := "new connections"
		if t.Accepted == 0 {
			connections = "connections"
		}
		return connections + s.until(at, true) + withPeer(", the last from ", c.Peer)
	case traffic.Bytes:
		if t.Kept.Connections > 0 && s.lastedToEnd(at) {
			return s.inUse(c.Peer) + s.until(at, true)
		}
		return "bytes moved" + s.until(at, true) + withPeer(", the last with ", c.Peer)
	case traffic.Requests:
		noun, state := "request", " in flight"
		if c.Undetermined {
			noun, state = "connection", ", perhaps idle,"
		}
		inFlight, _ := s.inFlight()
		return s.some(noun, c, at, inFlight) + state + s.until(at, inFlight > 0)
	case traffic.OpenConnections:
		return s.some("connection", c, at, t.Open) + " open" + s.until(at, t.Open > 0)
	case traffic.AcceptQueue:
		return s.some("connection", c, at, 0) + fmt.Sprintf(" waiting to be accepted on port %d", c.Port) + s.until(at, true)
	case traffic.Probe:
		return s.probe(c, at)
	}
	return ""
}

// until returns until when a cause lasted. A cause lasted to the end if, for a silence as
// long as the condition asks for, the hold ended too soon, and the cause is still there.
func (s *Stop) until(at time.Time, stillThere bool) string {
	switch {
	case !stillThere || !s.lastedToEnd(at):
		return " to +" + seconds(s.after(at))
	case s.Ended == "":
		return " so far"
	}
	return " to the end"
}

// lastedToEnd reports whether a cause that lasted until at lasted to the end of a hold whose
// condition was not met, or lasts still.
func (s *Stop) lastedToEnd(at time.Time) bool { return !s.conditionMet() && s.recent(at) }

// inUse returns the connections that clients kept using, the last bytes of which moved with
// a peer: "24 connections of 10.0.0.7 and 2 more peers in use".
func (s *Stop) inUse(peer netip.Addr) string {
	kept := &s.InHold.Traffic.Kept
	peers := counted(kept.Peers, "peer")
	switch {
	case peer.IsValid() && kept.Peers <= 1:
		peers = peer.String()
	case peer.IsValid():
		peers = fmt.Sprintf("%v and %s", peer, counted(kept.Peers-1, "more peer"))
	}
	return counted(kept.Connections, "connection") + " of " + peers + " in use"
}

// some returns the connections of a cause: "a request of 10.0.0.7 and 2 more". If the
// cause lasted to the end, the figure of the last sample is the number.
func (s *Stop) some(noun string, c *traffic.Cause, at time.Time, atEnd int) string {
	n := max(c.Connections, 1)
	if atEnd > 0 && s.lastedToEnd(at) {
		n = atEnd
	}
	if !c.Peer.IsValid() {
		return counted(n, noun)
	}
	return fmt.Sprintf("a %s of %v", noun, c.Peer) + andMore(n-1)
}

// probe returns a possible health probe in words.
func (s *Stop) probe(c *traffic.Cause, at time.Time) string {
	text := fmt.Sprintf("%d bytes%s every %s", c.Received, withPeer(" from ", c.Peer), seconds(c.Period))
	if !s.lastedToEnd(at) {
		text += s.until(at, true)
	}
	return text + ": a probe?"
}

// withPeer returns the words before a peer and the peer, or "" if the peer is not known.
func withPeer(before string, peer netip.Addr) string {
	if !peer.IsValid() {
		return ""
	}
	return before + peer.String()
}

// counted returns a number of things: "1 request", "2 requests".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// andMore returns " and 2 more", or "" for no more.
func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}
