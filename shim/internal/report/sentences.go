package report

import (
	"slices"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// InWords is [quote.InWords], by which all sentences are formatted.
func InWords(format string, args ...any) string { return quote.InWords(format, args...) }

// phrases are parts of a line, or lines.
type phrases []string

// say adds a sentence with its arguments.
func (p *phrases) say(sentence string, args ...any) { *p = append(*p, InWords(sentence, args...)) }

// add says a sentence if it applies.
func (p *phrases) add(applies bool, sentence string, args ...any) {
	if applies {
		p.say(sentence, args...)
	}
}

// about says a sentence about a text, unless that is empty.
func (p *phrases) about(text, sentence string) { p.add(text != "", sentence, text) }

// count says a sentence about a number of things, if there are any.
func (p *phrases) count(n int, noun, sentence string) { p.add(n > 0, sentence, counted(n, noun)) }

// countCut says that a number of things was cut, if there are any.
func (p *phrases) countCut(n int, one, many string) {
	p.add(n == 1, "1 %s was cut", one)
	p.add(n > 1, "%d %s were cut", n, many)
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

// Sentences that are said in several places.
const (
	atTime       = "%v at +%s"
	sentSignals  = "sent %s"
	stillHolding = "still holding"
	heldBy       = "held by %s"

	workersNeedTime = "what was at work needs a longer grace period, in --grace-period (LAMEDUCK_GRACE_PERIOD) too"
	closesKept      = "%s closes kept connections: --until=settled (LAMEDUCK_UNTIL) is enough" + unlessLate
	letServerClose  = "let the server close them, a few each second, at --on-stop=USR2 (LAMEDUCK_ON_STOP) " +
		"with --until=drained: see servers.md"
	unlessLate = ", unless a balancer lets go late: then give its lag as --delay (LAMEDUCK_DELAY)"
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

// byTraffic says what kept the hold up. The arguments are when that ended, the peer and port, and a
// probe's bytes and period.
var byTraffic = map[traffic.CauseKind]string{
	traffic.NewConnections:  "new connections until +%[1]s, the last %[2]s",
	traffic.Bytes:           "bytes until +%[1]s, the last %[2]s",
	traffic.Requests:        "requests in flight until +%[1]s, the oldest %[2]s",
	traffic.AcceptQueue:     "connections waiting to be accepted until +%[1]s, one %[2]s",
	traffic.OpenConnections: "open connections until +%[1]s, one %[2]s",
	traffic.Probe:           "what looks like a health probe, %[3]d bytes %[2]s every %[4]s, until +%[1]s",
}
