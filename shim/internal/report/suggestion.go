package report

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// suggestion returns what would be better, if the data supports a suggestion, or "": what the first
// advice says that applies.
func (s *Stop) suggestion() string {
	sees := s.InHold.sees() && s.Ended != stop.NoProgress
	for _, a := range advices {
		if text := a.text(s); text != "" && (sees || a.unseen) {
			return text
		}
	}
	return ""
}

// advices are what is suggested, and when. In package e2e/hold a row of the same name follows each,
// and counts what that saves.
var advices = []struct {
	name   string
	unseen bool // for stops without traffic to see, too
	text   func(s *Stop) string
}{
	{"workers", true, (*Stop).forWorkers},
	{"others", true, (*Stop).forOthersSignals},
	{"preset", true, (*Stop).forAnotherProgram},
	{"stays", false, (*Stop).forOneThatStays},
	{"streams", false, (*Stop).forStreams},
	{"endless", false, (*Stop).forEndless},
	{"caveat", false, (*Stop).forCaveat},
	{"delay", false, (*Stop).forDelay},
	{"probes", false, (*Stop).forProbes},
	{"kept", false, (*Stop).forKept},
	{"time", false, (*Stop).forRequests},
	{"open", false, (*Stop).forManyOpen},
}

func (s *Stop) forWorkers() string {
	if !s.ranOut() {
		return ""
	}
	return workersNeedTime
}

// signaledByOthers reports whether the command closed its ports right after the trigger, or ended as if
// asked to, although lameduck had sent nothing. A server does not exit 0 by itself; what has no port may.
func (s *Stop) signaledByOthers() bool {
	sees, listened := s.InHold.sees(), s.InHold.ListenedAt
	closed := sees && !listened.IsZero() && s.after(listened) < time.Second && s.after(s.endedAt()) > 2*time.Second
	asked := s.Exit.Signal == s.Trigger || s.Exit.Signal == 0 && s.Exit.Code == 0 && sees
	ended := s.Ended == stop.ChildExit && (asked || s.after(s.EndedAt) < time.Second/2)
	isAsking := s.Told != 0 || s.Gate.OnStop || len(s.WaitGone) > 0 || s.WaitURL != ""
	return (closed || ended) && s.Trigger != 0 && !isAsking
}

func (s *Stop) forOthersSignals() string {
	if !s.signaledByOthers() {
		return ""
	}
	text := InWords("the command got %v from somebody else, so there was no hold "+
		"(Heroku and systemd's KillMode=control-group signal every process)", s.Trigger)
	if s.Systemd {
		text += ": set KillMode=mixed"
	}
	return text
}

func (s *Stop) forAnotherProgram() string {
	if s.OtherProgram == "" || !s.ExitedAt.IsZero() && s.Exit.Signal == 0 {
		return ""
	}
	return InWords("the command is %s: is --preset=%s (LAMEDUCK_PRESET) meant for it?", s.OtherProgram, s.Server)
}

// forOneThatStays is for a server that has closed its ports and runs on.
func (s *Stop) forOneThatStays() string {
	served := s.Latest.ServedAt
	if !s.ExitedAt.IsZero() || len(s.Sent) == 0 || served.IsZero() || s.Now.Sub(served) < 5*time.Second {
		return ""
	}
	enough := served.Sub(s.Sent[0].At).Truncate(time.Second) + 5*time.Second
	return InWords("it has listened nowhere and had no connection since +%s: --kill-after=%d (LAMEDUCK_KILL_AFTER) ends it",
		s.when(served), int(enough.Seconds()))
}

// forStreams is for streams that the end of the hold has cut, or may cut, and that do end.
func (s *Stop) forStreams() string {
	_, cut := s.streams()
	switch s.Ended {
	case stop.Elapsed, stop.Settled, stop.Quiet, stop.Kept:
		if cut > 0 || s.Hook && s.InHold.Streams > 0 {
			return "--until=drained (LAMEDUCK_UNTIL) waits for the end of streams"
		}
	}
	return ""
}

// letServerClose is the advice for connections that do not end by themselves.
const letServerClose = "let the server close them, a few each second, at --on-stop=USR2 (LAMEDUCK_ON_STOP) " +
	"with --until=drained: see servers.md"

// forEndless is for streams that were open in all of the hold, up to the ceiling.
func (s *Stop) forEndless() string {
	if s.Ended != stop.Ceiling || s.InHold.Streams == 0 || s.InHold.Longest < s.after(s.EndedAt)-time.Second {
		return ""
	}
	return "streams went on in all of the hold: if they do not end, " + letServerClose
}

func (s *Stop) forCaveat() string {
	if s.inFlight() == 0 || len(s.Sent) == 0 {
		return ""
	}
	return s.Caveat
}

// forDelay is for a plain delay that was too short or too long.
func (s *Stop) forDelay() string {
	if s.Ended != stop.Elapsed || s.Gate.Conditional() {
		return ""
	}
	inFlight := s.inFlight()
	last, what := s.InHold.LastOther, "new connection" // probes aside
	if use := s.InHold.LastUse; use.Sub(last) >= time.Second {
		last, what = use, "traffic"
	}
	enough := s.after(last).Truncate(time.Second) + 2*time.Second
	cutKept := inFlight > 0 && s.InHold.InUse > 0
	switch toTheEnd := cutKept || s.EndedAt.Sub(last) < time.Second; {
	case toTheEnd && s.ClosesKept && s.settled():
		return InWords(closesKept, s.Server)
	case toTheEnd:
		return InWords("traffic came until the end: %s is too short, see --until=quiet (LAMEDUCK_UNTIL)", s.Gate.Floor)
	case last.After(s.TriggeredAt) && enough < s.Gate.Floor && inFlight == 0:
		return InWords("last %s, probes aside, at +%s: a fixed delay needs %s", what, s.when(last), enough)
	}
	return ""
}

// settled reports whether nothing new has come for as long as a hold requires, probes aside.
func (s *Stop) settled() bool {
	return s.endedAt().Sub(s.InHold.LastOther) >= s.TrafficConfig.QuietFor
}

// forProbes is for what looks like a probe, or like a stream that needs no drain, and for traffic that a
// balancer goes on sending.
func (s *Stop) forProbes() string {
	_, cause := s.prolonged()
	rate := float64(cause.Connections) / s.TrafficConfig.QuietFor.Seconds()
	average := float64(s.InHold.Accepted) / s.after(s.endedAt()).Seconds()
	isNew := cause.Kind == traffic.NewConnections
	steady := rate >= max(1, average/2) // in the end, of those that count
	// An exec probe or a HEALTHCHECK comes once a second at most, in all of the hold, and keeps no connection.
	untilLast := max(s.after(s.InHold.LastNew).Seconds(), 1)
	seldom := rate <= 1 && float64(s.InHold.Accepted) <= untilLast+1 && s.InHold.InUse+s.InHold.Asked.CameBack == 0
	switch {
	case cause.Unanswered:
		return InWords("--ignore-port=%d (LAMEDUCK_IGNORE_PORT) or --until=settled (LAMEDUCK_UNTIL), "+
			"if such a stream needs no drain", cause.Port)
	case cause.Kind == traffic.Probe && s.TrafficConfig.Probes != traffic.IgnoreProbes:
		return "--ignore-probes (LAMEDUCK_IGNORE_PROBES) leaves health probes out sooner"
	case isNew && cause.Peer.IsLoopback() && seldom:
		return "a probe over loopback? if nothing else comes that way, --ignore-peer=127.0.0.1 " +
			"--ignore-peer=::1 (LAMEDUCK_IGNORE_PEER) leaves it out"
	case isNew && s.Ended == stop.Ceiling && steady:
		return "new connections kept their rate to the ceiling: a liveness restart, the last endpoint, " +
			"or a balancer that never removed this pod"
	}
	return ""
}

// forKept is for connections that clients keep and use.
func (s *Stop) forKept() string {
	_, cause := s.prolonged()
	kept := cause.Kind == traffic.Bytes && s.InHold.InUse > s.InHold.Streams && s.Gate.Until == stop.Quiet && s.settled()
	switch {
	case !kept || s.TrafficConfig.CloseIdle || len(s.TrafficConfig.Goaway) > 0:
		return ""
	case s.ClosesKept:
		return InWords(closesKept, s.Server)
	case s.Server == "":
		return "--until=settled (LAMEDUCK_UNTIL) is enough if the server closes kept connections, " +
			"else --close-idle (LAMEDUCK_CLOSE_IDLE) closes them" + unlessLate
	}
	return "clients keep their connections: --close-idle (LAMEDUCK_CLOSE_IDLE) closes them" + unlessLate
}

// forRequests is for requests, and streams, that were under way at the ceiling: as much time again as
// the longest of them had taken.
func (s *Stop) forRequests() string {
	if s.Ended != stop.Ceiling || s.inFlight()+s.InHold.Streams == 0 {
		return ""
	}
	longer := s.after(s.EndedAt) + max(s.InHold.Longest, s.TrafficConfig.QuietFor)
	if grace := s.GraceFor(longer); grace > s.Grace {
		return InWords("requests need more time: a grace period of at least %s, in --grace-period (LAMEDUCK_GRACE_PERIOD) too",
			grace)
	}
	return InWords("requests need more time: --max-delay=%d (LAMEDUCK_MAX_DELAY)", int(longer.Seconds())+1)
}

// manyOpen is how many connections are worth a word when they end in one instant: many clients then
// connect again at once.
const manyOpen = 20

func (s *Stop) forManyOpen() string {
	if s.InHold.Open < manyOpen || s.InHold.InUse > 0 || s.Exit.Signal == 0 || s.Gate.OnStop {
		return ""
	}
	return InWords("%d connections ended in one instant: if they are WebSockets, %s", s.InHold.Open, letServerClose)
}
