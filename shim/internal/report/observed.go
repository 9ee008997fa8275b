package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// The weights of the details. A suggestion stands in the line whenever it has room.
const (
	leftOutWeight = iota
	newPortsWeight
	arrivalsWeight
	sourceWeight
	causeWeight
	givenUpWeight
	unseenWeight
	suggestionWeight
)

// parts returns the details, what prolonged the hold, and the suggestion.
func (s *Stop) parts() []part {
	parts := s.details()
	if cause := s.prolonged(); cause.by != "" && !cause.ordinary {
		parts = append(parts, part{forms: []string{cause.by + cause.hint, cause.by}, weight: causeWeight, brief: cause.brief})
	}
	return append(parts, s.advice()...)
}

// details returns what the samples in the hold showed.
func (s *Stop) details() []part {
	var parts []part
	add := func(weight int, forms ...string) {
		if len(forms) > 0 && forms[0] != "" {
			parts = append(parts, part{forms: forms, weight: weight})
		}
	}
	if s.InHold.sees() {
		add(givenUpWeight, s.givenUp())
		add(arrivalsWeight, s.arrivals()...)
		add(newPortsWeight, s.newPorts())
		add(leftOutWeight, s.leftOut())
	}
	add(unseenWeight, s.unseen()...)
	add(sourceWeight, s.source())
	return parts
}

// advice returns the suggestion, if there is a suggestion.
func (s *Stop) advice() []part {
	if suggestion := s.suggestion(); suggestion.text != "" {
		return []part{{forms: []string{suggestion.text + suggestion.more, suggestion.text}, weight: suggestionWeight}}
	}
	return nil
}

// unseen returns the sockets whose traffic could not be observed, with UDP's ports and
// without.
func (s *Stop) unseen() []string {
	o := &s.InHold
	var kinds []string
	if o.Observer == "" {
		kinds = o.Unseen
	}
	if n := len(o.UDPPorts); n > 0 {
		udp := fmt.Sprintf("UDP on %s", PortList(o.UDPPorts))
		return []string{cannotBeSeen(append([]string{udp}, kinds...)), cannotBeSeen(append([]string{"UDP"}, kinds...))}
	}
	switch {
	case o.Blind:
		return []string{"the traffic could not be seen"}
	case len(kinds) > 0:
		return []string{cannotBeSeen(kinds)}
	}
	return nil
}

func cannotBeSeen(kinds []string) string { return strings.Join(kinds, " and ") + " cannot be seen" }

// source returns where the figures come from, if the source is not the best source: the
// tables of /proc/net, or all sockets of the network namespace, neighbors' included.
func (s *Stop) source() string {
	o := &s.InHold
	var sources []string
	if o.InFlightUnknown {
		sources = append(sources, "by "+o.Observer)
	}
	if o.Neighbors {
		sources = append(sources, "in all of "+o.Scope)
	}
	if !o.sees() || len(sources) == 0 {
		return ""
	}
	return "seen " + strings.Join(sources, ", ")
}

// newPorts returns the ports that the container opened during the hold.
func (s *Stop) newPorts() string {
	if len(s.InHold.LatePorts) == 0 {
		return ""
	}
	return "opened during the hold: " + PortList(s.InHold.LatePorts)
}

// arrivals returns the connections since the trigger, and the time of the last that counts:
// with a sparkline, without, and without the peer and the last byte. Connections too short
// to be counted may still have been noticed.
func (s *Stop) arrivals() []string {
	t := &s.InHold.Traffic
	last := s.lastArrival()
	tail := s.lastNewPeer() + s.lastByte()
	if t.Accepted == 0 {
		text := "0 new connections"
		if last != "" || t.More {
			text = "new connections, too short to be counted" + last
		}
		return []string{text + tail, text}
	}
	text := counted(t.Accepted, "new connection")
	if t.More {
		text = "at least " + text
	}
	withoutBytes := ""
	switch bare := s.bare(); {
	case bare == t.Accepted:
		return []string{text + " " + Sparkline(t.PerSecond) + ", without a byte", text + ", without a byte"}
	case bare > 0:
		withoutBytes = fmt.Sprintf(", %d without a byte", bare)
	}
	rest := withoutBytes + last + tail
	return []string{text + " " + Sparkline(t.PerSecond) + rest, text + rest, text + last}
}

// lastArrival returns when the last new connection came that counts, as the end of a part.
func (s *Stop) lastArrival() string {
	lastNew := s.lastNew()
	came := lastNew.After(s.TriggeredAt)
	probes, _ := s.probesCounted()
	someLeftOut := s.InHold.Traffic.Accepted > 0 && s.bare()+probes > 0
	switch {
	case came && someLeftOut:
		return ", the last that counts at +" + seconds(s.after(lastNew))
	case came:
		return ", the last at +" + seconds(s.after(lastNew))
	case someLeftOut:
		return ", none counts"
	}
	return ""
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

// lastByte returns when the last byte moved, as the end of a part, if that was noticeably
// later than the last new connection; or "".
func (s *Stop) lastByte() string {
	at := s.InHold.Traffic.LastByte
	if !at.After(s.TriggeredAt) || at.Sub(s.lastNew()) < time.Second {
		return ""
	}
	return ", the last byte at +" + seconds(s.after(at))
}

// givenUp returns the silence of the requests that the hold has given up, or "". The
// silence is the silence of each request: other connections may have moved bytes since.
func (s *Stop) givenUp() string {
	_, n := s.inFlight()
	peer := s.InHold.Traffic.LeftOut.GivenUpPeer
	silent := "silent for " + stop.FormatDuration(s.TrafficConfig.MaxSilence)
	switch {
	case n == 0:
		return ""
	case n == 1:
		return "the request" + withPeer(" of ", peer) + " was " + silent
	case !peer.IsValid():
		return "the requests were " + silent
	}
	return fmt.Sprintf("the requests, one of %v, were %s", peer, silent)
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

// sees reports whether a source showed connections.
func (o *Observation) sees() bool { return o.Observer != "" && !o.Blind }
