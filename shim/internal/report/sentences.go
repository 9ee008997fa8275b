package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// This file has every sentence of the report, once. testdata/report.txt shows each in use.

// say returns a sentence with its arguments.
func say(sentence string, args ...any) string { return InWords(sentence, args...) }

// InWords is fmt.Sprintf with configured and derived durations in seconds, for people: "2 s",
// "2.83 s", "0.125 s".
func InWords(format string, args ...any) string {
	for i, arg := range args {
		d, isDuration := arg.(time.Duration)
		if d > time.Second {
			d = d.Round(10 * time.Millisecond)
		}
		if isDuration {
			args[i] = fmt.Sprintf("%v s", d.Round(time.Millisecond).Seconds())
		}
	}
	return fmt.Sprintf(format, args...)
}

// phrases are parts of a line, or lines.
type phrases []string

// put adds a text if it applies.
func (p *phrases) put(applies bool, text string) {
	if applies {
		*p = append(*p, text)
	}
}

// add adds a sentence with its arguments if it applies.
func (p *phrases) add(applies bool, sentence string, args ...any) {
	p.put(applies, say(sentence, args...))
}

// Columns is the greatest width of a sparkline.
const Columns = 30

// Sparkline draws a bar for each number, or for each group of numbers if there are more
// than [Columns]. The highest bar is full.
func Sparkline(numbers []int) (line string) {
	groupSize := (len(numbers)-1)/Columns + 1
	highest := 1
	var sums []int
	for group := range slices.Chunk(numbers, groupSize) {
		sum := 0
		for _, n := range group {
			sum += n
		}
		sums = append(sums, sum)
		highest = max(highest, sum)
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	for _, sum := range sums {
		line += string(bars[(sum*(len(bars)-1)+highest-1)/highest])
	}
	return line
}

// The line at the trigger: what will happen, and what may end it early.
const (
	noHoldNow   = "no hold; now %v"
	holdingHook = "holding %s; TERM ends the wait"
	holdUpTo    = "up to %s until %s"
	holdFromTo  = "%s to %s until %s"
	pathGone    = "%s is gone"
	urlAnswers  = "%s answers 200"
	onStopEnded = "--on-stop has ended"
	holdingThen = "holding %s, then %v; a second %v ends the wait"
	killAfter   = "KILL %s after the first signal"
	assumedAsIn = "grace period assumed: %s, as in %s"
)

// The outcome begins with what the signal may have cut.
const (
	nothingInFlight = "nothing in flight"
	someInFlight    = "%s in flight"
	streamCut       = "1 stream was cut"
	streamsCut      = "%d streams were cut"
	streamsOpen     = "%s open"
	unknownInFlight = "in flight unknown"
	givenUp         = "%s given up, silent for %s"
	inUse           = "%s in use"
	onlyOpen        = "%s open"
	udpNotSeen      = "UDP on %s cannot be seen"
	notSeen         = "%s cannot be seen"
	blind           = "the traffic could not be seen"
)

// Then comes the course of the stop.
const (
	noHold         = "no hold"
	held           = "held %s (%s)"
	atLull         = "%s, at a lull"
	ofGiven        = "%s of %s"
	ofAssumed      = "%s of %s (assumed)"
	sentSignals    = "sent %s"
	sentAtStart    = "sent %s at the start"
	signalsRefused = "%s refused by the kernel"
	atTime         = "%v at +%s"
	exited         = "exited %d"
	endedBy        = "ended by %v (%d)"
	killedBy       = "killed by %v (%d)"
	killedByUs     = "killed by lameduck's %v (%d)"
	sentTo         = "%s to %s"
	theCommand     = "the command %s"
	process        = "%s (pid %d)"
	andOthers      = "%s and %d more"
	workersEnded   = "%s ended %s later"
	workersLeft    = "%s still at work"
	descendantsEnd = "its descendants ended"
)

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

// The connections come last.
const (
	newAtLeast  = "at least %s"
	lastNewAt   = "%s, the last at +%s"
	notCounted  = "not counted: %s"
	withoutByte = "%d without a byte"
	probesOf    = "%s of %v every %s"
	closedIdle  = "%s closed while idle"
	goawaySent  = "GOAWAY sent on %s"
	someBack    = "%d came back"
	source      = "source: %s"
)

// While the command still runs, the outcome begins with one of these.
const (
	stillHolding   = "still holding"
	stillRuns      = "the command still runs"
	workersRun     = "%s, and %s is still at work"
	descendantsRun = "%s, and its descendants still run"
	inFlightNow    = "%s, %d in flight"
)

// The second line: what kept the hold up. The arguments of byTraffic are when that ended,
// the peer and port, and a probe's bytes and period.
var byTraffic = map[traffic.CauseKind]string{
	traffic.NewConnections:  "new connections until +%[1]s, the last %[2]s",
	traffic.Bytes:           "bytes until +%[1]s, the last %[2]s",
	traffic.Requests:        "requests in flight until +%[1]s, the oldest %[2]s",
	traffic.AcceptQueue:     "connections waiting to be accepted until +%[1]s, one %[2]s",
	traffic.OpenConnections: "open connections until +%[1]s, one %[2]s",
	traffic.Probe:           "what looks like a health probe, %[3]d bytes %[2]s every %[4]s, until +%[1]s",
}

const (
	heldBy       = "held by %s"
	byUnanswered = "bytes %[2]s, never answered, until +%[1]s"
	byOne        = "one of %s and %s"
	byURL        = "%s, which %s"
	byOnStop     = "--on-stop, which ran until +%s"
	fromPeer     = "from %v"
	fromUnknown  = "from an unknown peer"
	onPort       = "%s on port %d"
)

// The third line: a suggestion.
const (
	suggests = "suggestion: %s"

	workersNeedTime = "what was at work needs a longer grace period, in --grace-period (LAMEDUCK_GRACE_PERIOD) too"

	otherProgram  = "the command is %s: is --preset=%s (LAMEDUCK_PRESET) meant for it?"
	serverHangs   = "the server hangs: clients wait, and nothing is accepted, read or sent"
	delayTooShort = "traffic came until the end: %s is too short, see --until=quiet (LAMEDUCK_UNTIL)"
	delayTooLong  = "last %s, probes aside, at +%s: a fixed delay needs %s"
	closesKept    = "%s closes kept connections: --until=settled (LAMEDUCK_UNTIL) is enough" + unlessLate
	mayCloseKept  = "--until=settled (LAMEDUCK_UNTIL) is enough if the server closes kept connections, " +
		"else --close-idle (LAMEDUCK_CLOSE_IDLE) closes them" + unlessLate
	keepsOpen    = "clients keep their connections: --close-idle (LAMEDUCK_CLOSE_IDLE) closes them" + unlessLate
	keepsOn      = "clients keep their connections: a longer hold does not help" + unlessLate
	unlessLate   = ", unless a balancer lets go late: then give its lag as --delay (LAMEDUCK_DELAY)"
	ignoreOneWay = "--ignore-port=%d (LAMEDUCK_IGNORE_PORT) or --until=settled (LAMEDUCK_UNTIL), " +
		"if such a stream needs no drain"
	ignoreProbes   = "--ignore-probes (LAMEDUCK_IGNORE_PROBES) leaves health probes out sooner"
	ignoreLoopback = "a probe over loopback? if nothing else comes that way, --ignore-peer=127.0.0.1 " +
		"--ignore-peer=::1 (LAMEDUCK_IGNORE_PEER) leaves it out"
	waitForStreams = "--until=drained (LAMEDUCK_UNTIL) waits for the end of streams"
	moreGrace      = "%s need more time: a grace period of at least %s, " +
		"in --grace-period (LAMEDUCK_GRACE_PERIOD) too"
	longerMax = "%s need more time: a longer --max-delay (LAMEDUCK_MAX_DELAY)"
	killMode  = "systemd signals every process of a unit without KillMode=mixed: set it, " +
		"so that the command goes on serving"
	neverRemoved = "new connections kept their rate to the ceiling: a liveness restart, the last endpoint, " +
		"or a balancer that never removed this pod"
)

// What a stop cost, as lameduck watch reports it.
const (
	serversEnd      = "the server's end"
	portsEnd        = "the end of %d ports"
	endAfterTERM    = "TERM, then after %s %s"
	stillServes     = "TERM, and the server still serves after %s"
	killComes       = "%s, until KILL at %s"
	nothingListened = "TERM, and nothing listens"
	noneCut         = "no request was cut"
	oneCut          = "1 request in flight was cut"
	someCut         = "%d requests in flight were cut"
	cutUnknown      = "requests in flight are not known (source: %s)"
	eventsMissed    = "%s, perhaps more"
	noneRefused     = "no connection refused"
	someRefused     = "%s refused until +%s %s"
	atMost          = "at most %s"
	orLater         = "%s or later"
	probesRefused   = "%s refused"
	refusedUnknown  = "refused connections cannot be counted: %v"

	wouldHold     = "a hold until quiet would have lasted %s"
	toCeiling     = "to its ceiling, %s"
	delayNeeded   = "%s; a fixed delay needs %s%s"
	furtherNeeded = "a hold until quiet would have ended %s later; a fixed delay needs %s%s more than it waits now"
	keptToTheEnd  = "clients that keep their connections used %s to the end: " +
		"no delay is enough for them; see --close-idle"
	portEnded   = "port %d ended at +%s: %s"
	stillListen = "still listening: %s"
)
