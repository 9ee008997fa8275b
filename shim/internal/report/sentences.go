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

// put adds a text if it applies.
func (p *phrases) put(applies bool, text string) {
	if applies {
		*p = append(*p, text)
	}
}

// add adds a sentence with its arguments if it applies.
func (p *phrases) add(applies bool, sentence string, args ...any) {
	p.put(applies, InWords(sentence, args...))
}

// say adds a sentence with its arguments.
func (p *phrases) say(sentence string, args ...any) { p.put(true, InWords(sentence, args...)) }

// count adds a sentence with a number of things, and further arguments, if there are any things.
func (p *phrases) count(n int, noun, sentence string, args ...any) {
	p.add(n > 0, sentence, append([]any{counted(n, noun)}, args...)...)
}

// addCut adds a number of things that were cut, if there are any.
func (p *phrases) addCut(n int, one, many, more string) {
	p.add(n == 1, "1 %s was cut%s", one, more)
	p.add(n > 1, "%d %s were cut%s", n, many, more)
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
