package report

import (
	"fmt"
	"strings"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// This file has every sentence of the report, once. testdata/report.txt shows each in use.

// sentence is a format string.
type sentence string

func (s sentence) with(args ...any) string { return fmt.Sprintf(string(s), args...) }

// asGiven is for text that is complete.
const asGiven sentence = "%v"

// phrases are parts of a line, or lines.
type phrases []string

// add adds a phrase if it applies.
func (p *phrases) add(applies bool, s sentence, args ...any) {
	if applies {
		*p = append(*p, s.with(args...))
	}
}

func (p phrases) join(separator string) string { return strings.Join(p, separator) }

// The line at the trigger: what will happen, and what may end it early.
const (
	noHoldNow       sentence = "no hold; now %v"
	holding         sentence = "holding %s"
	holdUpTo        sentence = "up to %s until %s"
	holdFromTo      sentence = "%s to %s until %s"
	pathGone        sentence = "%s is gone"
	onStopEnded     sentence = "--on-stop has ended"
	holdingThen     sentence = "holding %s, then %v"
	hookEndsEarly   sentence = "TERM ends the wait"
	secondEndsEarly sentence = "a second %v ends the wait"
	killAfter       sentence = "KILL %s after the first signal"
	assumedAsIn     sentence = "grace period assumed: %s, as in %s"
)

// The outcome begins with what the signal may have cut.
const (
	nothingInFlight sentence = "nothing in flight"
	someInFlight    sentence = "%s in flight"
	unknownInFlight sentence = "in flight unknown"
	givenUp         sentence = "%s given up, silent for %s"
	inUse           sentence = "%s in use"
	onlyOpen        sentence = "%s open"
	udpNotSeen      sentence = "UDP on %s cannot be seen"
	notSeen         sentence = "%s cannot be seen"
	blind           sentence = "the traffic could not be seen"
)

// Then comes the course of the stop.
const (
	noHold         sentence = "no hold"
	held           sentence = "held %s (%s)"
	heldByHook     sentence = "held %s (%s) of %s"
	atLull         sentence = "%s, at a lull"
	ofGrace        sentence = "%s of %s"
	assumed        sentence = "%s (assumed)"
	sentSignals    sentence = "sent %s"
	atTime         sentence = "%v at +%s"
	exited         sentence = "exited %d"
	endedBy        sentence = "ended by %v (%d)"
	killedBy       sentence = "killed by %v (%d)"
	killedByUs     sentence = "killed by lameduck's %v (%d)"
	descendantsEnd sentence = "%s, its descendants at +%s"
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
	someNew     sentence = "%s %s"
	newAtLeast  sentence = "at least %s"
	lastNewAt   sentence = "%s, the last at +%s"
	notCounted  sentence = "not counted: %s"
	withoutByte sentence = "%d without a byte"
	probesOf    sentence = "%s of %v every %s"
	source      sentence = "source: %s"
)

// While the command still runs, the outcome is one of these.
const (
	stillHolding   sentence = "still holding at +%s of %s%s"
	stillRuns      sentence = "the command still runs at +%s of %s%s: %s"
	descendantsRun sentence = "%s, and its descendants still run at +%s of %s: %s"
	inFlightNow    sentence = ", %d in flight"
)

// The line for a signal that started no stop.
const (
	noHoldTook sentence = "no hold took place: %v was passed on, and the command %s"
	wasEnded   sentence = "was %s"
)

// The second line: what kept the hold up. The arguments of byTraffic are when that ended,
// the peer and port, and a probe's bytes and period.
var byTraffic = map[traffic.CauseKind]sentence{
	traffic.NewConnections:  "new connections until +%[1]s, the last %[2]s",
	traffic.Bytes:           "bytes until +%[1]s, the last %[2]s",
	traffic.Requests:        "requests in flight until +%[1]s, the oldest %[2]s",
	traffic.AcceptQueue:     "connections waiting to be accepted until +%[1]s, one %[2]s",
	traffic.OpenConnections: "open connections until +%[1]s, one %[2]s",
	traffic.Probe:           "what looks like a health probe, %[3]d bytes %[2]s every %[4]s, until +%[1]s",
}

const (
	heldBy       sentence = "held by %s"
	byUnanswered sentence = "bytes %s, never answered, until +%s"
	byPath       sentence = "%s, which existed until the end"
	byOnePath    sentence = "one of %s, which existed until the end"
	byOnStop     sentence = "--on-stop, which ran until +%s"
	fromPeer     sentence = "from %v"
	fromUnknown  sentence = "from an unknown peer"
	onPort       sentence = "%s on port %d"
)

// The third line: a suggestion.
const (
	suggests sentence = "suggestion: %s"

	shellDrops sentence = "the command is a shell that does not pass %v on: " +
		"exec the program, or give --group (LAMEDUCK_GROUP)"
	otherProgram  sentence = "the command is %s: is --preset=%s (LAMEDUCK_PRESET) meant for it?"
	serverHangs   sentence = "the server hangs: clients wait, and nothing is accepted, read or sent"
	delayTooShort sentence = "traffic came until the end: %s is too short, see --until=quiet (LAMEDUCK_UNTIL)"
	delayTooLong  sentence = "last new connection, probes aside, at +%s: a fixed delay needs %s"
	closesKept    sentence = "%s closes kept connections: --until=settled (LAMEDUCK_UNTIL) is enough"
	mayCloseKept  sentence = "--until=settled (LAMEDUCK_UNTIL) is enough if the server closes kept connections"
	keepsOn       sentence = "clients keep their connections: a longer hold does not help"
	ignoreOneWay  sentence = "--ignore-port=%d (LAMEDUCK_IGNORE_PORT) or --until=settled (LAMEDUCK_UNTIL), " +
		"if such a stream needs no drain"
	ignoreProbes sentence = "--ignore-probes (LAMEDUCK_IGNORE_PROBES) leaves health probes out sooner"
	neverRemoved sentence = "new connections kept their rate to the ceiling: a liveness restart, the last endpoint, " +
		"or a balancer that never removed this pod"
	isStopSignal sentence = "if %v stops this container, give --stop-signal=%v (LAMEDUCK_STOP_SIGNAL)"
)
