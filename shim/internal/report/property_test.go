package report

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// TestNoContradiction: no two parts of a report contradict each other. Every field of a
// summary is random, and in half of the summaries the fields contradict each other.
func TestNoContradiction(t *testing.T) {
	random := &generator{Rand: rand.New(rand.NewPCG(1, 2))}
	seen := map[string]int{}
	for range 20_000 {
		s := random.stop()
		line, figures := whole(s), s.Figures()
		for _, p := range properties {
			if p.applies.MatchString(line) {
				seen[p.name]++
				if !p.holds(s, figures, line) {
					t.Fatalf("not so: %s\n%s\n%+v\n%s", p.name, line, s.InHold, Encode(figures))
				}
			}
		}
	}
	for _, p := range properties {
		if seen[p.name] < 20 {
			t.Errorf("only %d reports for: %s", seen[p.name], p.name)
		}
	}
}

// whole returns the line for the end as if the line had room for all details.
func whole(s *Stop) string {
	head := s.headline(false, s.held(), s.sent(false), s.exitWithTime())
	return strings.Join(append([]string{head}, words(s.parts())...), "; ")
}

// property is a condition on the lines matched by an expression.
type property struct {
	name    string
	applies *regexp.Regexp
	holds   func(s *Stop, f *Figures, line string) bool
}

var properties = []property{
	{"every line is complete and short", regexp.MustCompile(``), func(s *Stop, f *Figures, line string) bool {
		long := max(width(s.Conclusion()), width(s.Progress()), width(s.Late()), width(s.Announcement())) > room
		return !long && !malformed.MatchString(line+s.Conclusion()+s.Progress()+s.Late())
	}},
	{"without a new connection that counts, no line speaks of one", regexp.MustCompile(`: held`), func(s *Stop, f *Figures, line string) bool {
		return f.LastNewMS != nil || !newCounted.MatchString(line)
	}},
	{"new connections that were not counted have come", regexp.MustCompile(`too short to be counted`), func(s *Stop, f *Figures, line string) bool {
		return *f.Accepted == 0 && (f.LastNewMS != nil || s.InHold.Traffic.More)
	}},
	{"connections without a byte are no reason", regexp.MustCompile(`▁?, without a byte`), func(s *Stop, f *Figures, line string) bool {
		return f.LeftOut.NoBytes == *f.Accepted && f.LastNewMS == nil && !strings.Contains(line, "new connections to")
	}},
	{"a hold that ended well had no cause at its end", regexp.MustCompile(`\((settled|quiet|drained|elapsed)\)`), func(s *Stop, f *Figures, line string) bool {
		return !strings.Contains(ofDelay.ReplaceAllString(line, ""), "to the end")
	}},
	{"at most one cause is named", lasted, func(s *Stop, f *Figures, line string) bool {
		if ofDelay.MatchString(line) {
			return f.ProlongedBy == nil
		}
		return len(lasted.FindAllString(line, -1)) == 1 && f.ProlongedBy != nil
	}},
	{"a cause ends within the hold", regexp.MustCompile(` to \+[\d.]+ s`), func(s *Stop, f *Figures, line string) bool {
		return after(line, " to +") <= after(line, ": held ")
	}},
	{"bytes move until the last byte", regexp.MustCompile(`bytes moved to`), func(s *Stop, f *Figures, line string) bool {
		return f.LastByteMS != nil && (strings.Contains(line, "bytes moved to the end") || strings.Contains(line, "bytes moved to +"+seconds(s.after(s.InHold.Traffic.LastByte))))
	}},
	{"requests in flight to the end are in flight at the end", regexp.MustCompile(`(in flight|perhaps idle,) to the end`), func(s *Stop, f *Figures, line string) bool {
		return *f.InFlight > 0 && more(*f.ProlongedBy, "request", "connection") == *f.InFlight
	}},
	{"connections open to the end are open at the end", regexp.MustCompile(` open to the end`), func(s *Stop, f *Figures, line string) bool {
		return *f.Open > 0 && more(*f.ProlongedBy, "connection") == *f.Open
	}},
	{"requests given up are told once, with their number", regexp.MustCompile(`given up`), func(s *Stop, f *Figures, line string) bool {
		given := wereGiven.FindStringSubmatch(line)
		return (s.adaptive() || f.Lull != nil) && given != nil && given[1] == strconv.Itoa(f.LeftOut.GivenUp)
	}},
	{"a rate to the ceiling is the cause", regexp.MustCompile(`kept their rate`), func(s *Stop, f *Figures, line string) bool {
		return *f.Ended == "ceiling" && strings.HasPrefix(*f.ProlongedBy, "new connections to the end") && 2*f.LeftOut.NoBytes <= *f.Accepted
	}},
	{"a command that hangs is the only explanation", regexp.MustCompile(`the command hangs`), func(s *Stop, f *Figures, line string) bool {
		return *f.Ended == "no_progress" && f.ProlongedBy == nil
	}},
	{"a shorter delay is suggested only if nothing was in flight", regexp.MustCompile(`a fixed delay needs`), func(s *Stop, f *Figures, line string) bool {
		return *f.InFlight == 0 && !s.adaptive()
	}},
	{"a probe is left out or counts", regexp.MustCompile(`a probe\?`), func(s *Stop, f *Figures, line string) bool {
		cause := &s.InHold.Traffic.Cause
		for _, p := range s.InHold.Traffic.Patterns {
			if p.LeftOut && p.Peer == cause.Peer && p.Received == cause.Received {
				return false
			}
		}
		return (s.TrafficConfig.Probes == traffic.IgnoreProbes) != strings.Contains(line, "--ignore-probes")
	}},
	{"only an adaptive hold leaves traffic out", regexp.MustCompile(`left out:`), func(s *Stop, f *Figures, line string) bool {
		return s.adaptive()
	}},
	{"nothing was in flight at a lull", regexp.MustCompile(`at a lull`), func(s *Stop, f *Figures, line string) bool {
		return *f.Lull && *f.InFlight == 0 && !strings.Contains(line, "in flight to the end")
	}},
	{"without a lull, requests were in flight", regexp.MustCompile(`without a lull`), func(s *Stop, f *Figures, line string) bool {
		return !*f.Lull && *f.InFlight > 0 && after(line, " after ") <= after(line, ": held ")
	}},
	{"too many connections are no lull", regexp.MustCompile(`too many connections`), func(s *Stop, f *Figures, line string) bool {
		return !*f.Lull
	}},
	{"an end that does not wait tells of no lull", regexp.MustCompile(`\((second_signal|child_exit|no_progress|quiet|drained)\)`), func(s *Stop, f *Figures, line string) bool {
		return f.Lull == nil && !strings.Contains(line, "lull")
	}},
	{"connections in use are those of the summary", regexp.MustCompile(`in use to`), func(s *Stop, f *Figures, line string) bool {
		kept := s.InHold.Traffic.Kept
		peers := kept.Peers
		if f.Peer == nil {
			peers = 1
			fmt.Sscanf(*f.ProlongedBy, "%d connections of %d peers", new(int), &peers)
		} else if _, rest, found := strings.Cut(*f.ProlongedBy, *f.Peer+" and "); found {
			fmt.Sscanf(rest, "%d more", &peers)
			peers++
		}
		return peers == kept.Peers && strings.HasPrefix(*f.ProlongedBy, counted(kept.Connections, "connection")+" of ") && strings.HasSuffix(*f.ProlongedBy, "to the end")
	}},
	{"clients that keep their connections held to the end", regexp.MustCompile(`(clients keep their|closes kept) connections`), func(s *Stop, f *Figures, line string) bool {
		held := *f.Ended == "kept" || *f.Ended == "ceiling" || *f.Ended == "elapsed" && s.ClosesKept && *f.InFlight > 0
		return held && s.InHold.Traffic.Kept.Connections > 0 && !strings.Contains(line, "new connections to the end")
	}},
	{"a server is named that closes kept connections", regexp.MustCompile(`--until=settled is enough`), func(s *Stop, f *Figures, line string) bool {
		known := s.Server != "" && strings.Contains(line, s.Server+" closes kept connections")
		return known == (s.Server != "") && (!known || s.ClosesKept)
	}},
	{"a longer hold would have helped unless kept", regexp.MustCompile(`a longer hold does not help`), func(s *Stop, f *Figures, line string) bool {
		return *f.Ended == "kept" && s.Server != "" && !s.ClosesKept
	}},
	{"a delay among kept connections was too short for requests in flight", regexp.MustCompile(`traffic came to the end on`), func(s *Stop, f *Figures, line string) bool {
		return *f.Ended == "elapsed" && *f.InFlight > 0 && !s.ClosesKept && (f.Lull == nil || !*f.Lull)
	}},
	{"a probe held until it was left out", regexp.MustCompile(`held until recognized`), func(s *Stop, f *Figures, line string) bool {
		return strings.Contains(*f.ProlongedBy, "a probe?") && strings.Contains(line, "left out: a probe of "+*f.Peer+" ")
	}},
	{"unseen traffic has no figures", regexp.MustCompile(`the traffic could not be seen`), func(s *Stop, f *Figures, line string) bool {
		return f.Accepted == nil && f.LeftOut == nil && f.Peer == nil && !strings.Contains(line, "open at the end")
	}},
	{"the words name the peer of the JSON", regexp.MustCompile(``), func(s *Stop, f *Figures, line string) bool {
		return f.Peer == nil || strings.Contains(*f.ProlongedBy, *f.Peer)
	}},
}

// Expressions of the properties.
var (
	malformed  = regexp.MustCompile(`invalid|%!|;;|  |; ;|, ,|-\d|\+-|<nil>|0001`)
	newCounted = regexp.MustCompile(`new connections? (to|kept|came|but)|last new connection|, the last (that counts )?at|connections to (the end|\+)`)
	lasted     = regexp.MustCompile(` to (the end|\+)`)
	wereGiven  = regexp.MustCompile(`[ ,](\d+) requests? given up`)
	ofDelay    = regexp.MustCompile(`(new connections|traffic) came to the end`) // suggestions after a plain delay
	moreOf     = regexp.MustCompile(` and (\d+) more`)
)

// after returns the number after words in a line, -1 without.
func after(line, words string) (n float64) {
	_, rest, found := strings.Cut(line, words)
	if !found {
		return -1
	}
	number, _, _ := strings.Cut(rest, " ")
	n, _ = strconv.ParseFloat(number, 64)
	return n
}

// more returns how many things "a request of 10.0.0.7 and 2 more" or "3 requests" are.
func more(words string, nouns ...string) int {
	for _, noun := range nouns {
		var n int
		if _, err := fmt.Sscanf(words, "%d "+noun, &n); err == nil {
			return n
		}
	}
	found := moreOf.FindStringSubmatch(words)
	if found == nil {
		return 1
	}
	n, _ := strconv.Atoi(found[1])
	return n + 1
}

// generator makes random stops.
type generator struct {
	*rand.Rand
	held time.Duration // the length of the hold
}

var began = time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC)

// moment returns a time in the hold, or up to 2 s before the trigger, or the zero time.
func (g *generator) moment() time.Time {
	if g.IntN(4) == 0 {
		return time.Time{}
	}
	return began.Add(time.Duration(g.Int64N(int64(g.held+2*time.Second))) - 2*time.Second)
}

// some returns a number, often 0.
func (g *generator) some(n int) int {
	if g.IntN(3) > 0 {
		return 0
	}
	return g.IntN(n)
}

// peer returns an address, or the zero Addr.
func (g *generator) peer() netip.Addr {
	return [...]netip.Addr{{}, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("fd00::7")}[g.IntN(4)]
}

func (g *generator) stop() *Stop {
	reasons := []stop.Reason{"", stop.Settled, stop.Quiet, stop.Drained}
	gate := stop.Gate{
		Floor: time.Duration(g.IntN(6)) * time.Second, Ceiling: 15 * time.Second, Until: reasons[g.IntN(4)],
		WaitGone: g.IntN(8) == 0, OnStop: g.IntN(8) == 0,
	}
	s := &Stop{
		Terms: Terms{
			StopConfig:    &stop.Config{Gate: gate, Grace: 30 * time.Second},
			TrafficConfig: &traffic.Config{QuietFor: 4 * time.Second, MaxSilence: 8 * time.Second, Probes: traffic.ProbeRule(g.IntN(3))},
		},
		Record: stop.Record{Trigger: sig.TERM, TriggeredAt: began},
	}
	s.Server = [...]string{"", "nginx", "envoy"}[g.IntN(3)]
	s.ClosesKept = s.Server == "nginx"
	g.end(s)
	s.InHold = Observation{Traffic: g.summary(), Observer: "sock_diag", Scope: "the ports given", ScopeName: "ports"}
	g.keepConnections(s)
	switch g.IntN(20) {
	case 0:
		s.InHold.Observer, s.InHold.Blind = "none", true
	case 1:
		s.InHold.Observer = ""
	case 2:
		s.InHold.Observer, s.InHold.InFlightUnknown = "/proc/net", true
	}
	if gate.OnStop {
		s.OnStopUntil = g.moment()
	}
	if gate.WaitGone && g.IntN(2) == 0 {
		s.InHold.PathsPresent = []string{"/run/a", "/run/b"}[:1+g.IntN(2)]
	}
	return s
}

// keepConnections makes bytes move to the end of most holds that ended among kept
// connections, or after a plain delay.
func (g *generator) keepConnections(s *Stop) {
	t := &s.InHold.Traffic
	if g.IntN(4) == 0 {
		return
	}
	switch s.Ended {
	case stop.Kept:
		t.LastByte = s.EndedAt
		t.Cause.Kind = traffic.Bytes
	case stop.Elapsed:
		t.LastByte = s.EndedAt
	}
}

// end ends the hold for a reason allowed by the gate.
func (g *generator) end(s *Stop) {
	gate := &s.StopConfig.Gate
	reasons := []stop.Reason{stop.SecondSignal, stop.ChildExit}
	if gate.Until == "" {
		reasons = append(reasons, stop.Elapsed, stop.Elapsed, stop.Elapsed)
	} else {
		reasons = append(reasons, gate.Until, gate.Until, gate.Until, stop.Ceiling, stop.Ceiling, stop.Kept, stop.NoProgress)
	}
	s.Ended = reasons[g.IntN(len(reasons))]
	g.held = time.Duration(1+g.IntN(15_000)) * time.Millisecond
	switch s.Ended {
	case stop.Ceiling:
		g.held = gate.Ceiling
	case stop.Elapsed, gate.Until:
		g.held = max(g.held, gate.Floor)
	}
	s.EndedAt = began.Add(g.held)
	s.Now = s.EndedAt
	s.ExitedAt = s.EndedAt
	if s.Ended != stop.ChildExit {
		s.Sent = []stop.Sent{{Signal: sig.USR1, At: s.EndedAt}, {Signal: sig.TERM, At: s.Now}}[:1+g.IntN(2)]
	}
	s.Lull = g.lull(s)
}

// lull returns a random search, or none. A hold that ends by itself with Quiet or Drained
// has no search.
func (g *generator) lull(s *Stop) (l stop.Lull) {
	if g.IntN(3) == 0 || !s.StopConfig.Gate.Holds() || s.Ended == stop.Quiet || s.Ended == stop.Drained {
		return l
	}
	l.Sought = s.EndedAt.Add(-time.Duration(g.Int64N(int64(min(g.held, time.Second)))))
	l.Found = g.IntN(2) == 0
	l.TooMany = !l.Found && g.IntN(4) == 0
	switch {
	case l.TooMany:
		l.Sought = time.Time{}
	case !l.Found:
		l.InFlight = g.some(5)
	}
	return l
}

// summary returns a random summary. The fields of every other summary agree.
func (g *generator) summary() traffic.Summary {
	t := traffic.Summary{
		More: g.IntN(10) == 0, LastNew: g.moment(), LastByte: g.moment(), LastOther: g.moment(),
		Open: g.some(9), InFlight: g.some(4), PerSecond: g.perSecond(),
		Cause: g.cause(), LeftOut: g.leftOut(),
	}
	if g.IntN(2) == 0 {
		t.Kept.Connections = 1 + g.IntN(40)
		t.Kept.Peers = 1 + g.IntN(t.Kept.Connections)
	}
	for range g.some(4) {
		t.Patterns = append(t.Patterns, traffic.Pattern{Peer: netip.MustParseAddr("10.0.0.1"), Port: 80, Received: uint64(g.IntN(3)), Period: time.Second, LeftOut: g.IntN(2) == 0, Count: g.IntN(9)})
	}
	for _, n := range t.PerSecond {
		t.Accepted += n
	}
	if g.IntN(2) == 0 {
		agree(&t)
	}
	return t
}

// agree removes contradictions between fields.
func agree(t *traffic.Summary) {
	t.LeftOut.Bare = min(t.LeftOut.Bare, t.Accepted)
	if t.Accepted == t.LeftOut.Bare {
		t.LastNew = time.Time{}
	}
	if t.LastOther.After(t.LastNew) {
		t.LastOther = t.LastNew
	}
	switch t.Cause.Kind {
	case traffic.NewConnections:
		t.Cause.At = t.LastNew
	case traffic.Bytes:
		t.Cause.At = t.LastByte
	case traffic.Probe:
		for i := range t.Patterns {
			t.Cause.Peer = t.Patterns[i].Peer
			t.Cause.Received = t.Patterns[i].Received
		}
	}
}

// perSecond returns the connections of up to 15 seconds: no connection, a steady rate, or
// an unsteady rate.
func (g *generator) perSecond() []int {
	perSecond := make([]int, 1+g.IntN(15))
	most := [...]int{0, 1, 3, 40}[g.IntN(4)]
	steady := g.IntN(2) == 0
	for i := range perSecond {
		perSecond[i] = most
		if !steady && most > 0 {
			perSecond[i] = g.IntN(most)
		}
	}
	return perSecond
}

func (g *generator) cause() traffic.Cause {
	return traffic.Cause{
		Kind: traffic.CauseKind(g.IntN(int(traffic.OpenConnections) + 1)), Peer: g.peer(), Port: 80, At: g.moment(),
		Connections: g.some(5), Period: time.Second, Received: uint64(g.IntN(3)), Undetermined: g.IntN(4) == 0,
	}
}

func (g *generator) leftOut() traffic.LeftOut {
	return traffic.LeftOut{
		HalfOpen: g.some(500), Bare: g.some(30), Gone: g.some(3), OneWay: g.some(3), Undetermined: g.some(4), GivenUp: g.some(4), GivenUpPeer: g.peer(),
	}
}
