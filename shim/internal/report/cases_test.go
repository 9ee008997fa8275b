package report

import (
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/cost"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

//go:embed testdata/stops.txt
var stops string

//go:embed testdata/costs.txt
var costs string

var (
	trigger  = time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC)
	balancer = netip.MustParseAddr("10.0.0.7")
)

// at returns a moment so many seconds after the trigger.
func at(after float64) time.Time {
	return trigger.Add(time.Duration(after * float64(time.Second)))
}

// newStop returns a stop of 25 new connections, with --delay=2 --until=quiet --max-delay=15
// --grace-period=30, that ended quiet after 9.3 s.
func newStop() *Stop {
	s := &Stop{
		Plan: &plan.Plan{
			Place: plan.Place{Server: &preset.Preset{}},
			Stop: stop.Config{
				Gate:  stop.Gate{Floor: 2 * time.Second, Ceiling: 15 * time.Second, Until: stop.Quiet},
				Grace: 30 * time.Second,
			},
			Traffic: traffic.Config{QuietFor: 4 * time.Second, MaxSilence: 30 * time.Second},
		},
		Record: stop.Record{Trigger: sig.TERM, TriggeredAt: trigger, Steps: stop.Schedule{{Signal: sig.TERM}}},
		InHold: Observation{Observer: "sock_diag", ScopeName: "descriptors", Sample: traffic.Sample{
			Accepted: 25, PerSecond: []int{5, 5, 5, 5, 4, 1, 0, 0, 0}, LastNew: at(5.3), LastOther: at(5.3), LastByte: at(5.3),
			Cause: traffic.Cause{Kind: traffic.NewConnections, Peer: balancer, Port: 8080, At: at(5.3), Connections: 5},
		}},
	}
	s.end(stop.Quiet, 9.3)
	return s
}

// end ends the hold, and the command a tenth of a second later.
func (s *Stop) end(reason stop.Reason, held float64) {
	s.Ended, s.EndedAt = reason, at(held)
	s.ExitedAt, s.Now = at(held+0.1), at(held+0.1)
	s.Exit = stop.Event{Kind: stop.CommandExited}
	s.Sent = []stop.Sent{{Signal: s.Steps.FirstSignal(0), At: at(held)}}
}

// words of testdata/stops.txt stand for other changes; $ is what follows.
var words = map[string]string{
	"hook":  "Hook; Trigger=zero; Steps=zero; Sent=zero; ExitedAt=zero",
	"runs":  "ExitedAt=zero; Now=$",                                // and holds, if the hold has not ended
	"delay": "Stop.Gate=zero; Stop.Gate.Floor=$s; end elapsed $",   // a plain one, which has passed
	"kept":  "traffic bytes 8080; InHold.Open=30; InHold.InUse=24", // clients use connections that they keep
}

// change makes changes of testdata/stops.txt.
func (s *Stop) change(steps string) {
	for step := range strings.SplitSeq(steps, ";") {
		word, rest, _ := strings.Cut(strings.TrimSpace(step), " ")
		kind, figure, _ := strings.Cut(rest, " ")
		number, _ := strconv.ParseFloat(figure, 64)
		in := &s.InHold
		switch word {
		case "end":
			s.end(stop.Reason(kind), number)
		case "sent":
			after, _ := strconv.ParseFloat(kind, 64)
			signal, _ := sig.Parse(figure)
			s.Sent = append(s.Sent, stop.Sent{Signal: signal, At: at(after)})
		case "traffic": // holds to the end, without new connections
			in.Sample = traffic.Sample{PerSecond: make([]int, 15), LastByte: at(14.9)}
			kinds := strings.Fields("none connections bytes requests probe queue open")
			in.Cause = traffic.Cause{Kind: traffic.CauseKind(slices.Index(kinds, kind)), Peer: balancer, At: at(14.9)}
			in.Cause.Port, in.Cause.Connections = uint16(number), 3
			s.end(stop.Ceiling, 15)
		case "connections": // new ones, in each second and in all
			in.PerSecond = nil
			for number := range strings.FieldsSeq(rest) {
				n, _ := strconv.Atoi(number)
				in.PerSecond = append(in.PerSecond, n)
				in.Accepted += n
			}
		default:
			if changes := words[word]; changes != "" {
				s.change(strings.ReplaceAll(changes, "$", rest))
			} else {
				set(s, strings.TrimSpace(step))
			}
		}
	}
}

// set sets a field: "InHold.Open=3". Times are seconds after the trigger.
func set(target any, step string) {
	path, text, _ := strings.Cut(step, "=")
	if !tables.Set(target, path, text, sig.Parse, stop.ParseSchedule, check.ParseRequest, moment, netip.ParseAddr,
		errors.New, worker, probes, end) {
		panic(step)
	}
}

// moment returns the zero time for another text than a number.
func moment(text string) time.Time {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return time.Time{}
	}
	return at(seconds)
}

// worker returns a process: its program, its PID, and when it ended, if it has.
func worker(text string) (w Worker) {
	ended := 0.0
	if n, _ := fmt.Sscan(text, &w.Program, &w.PID, &ended); n == 3 {
		w.EndedAt = at(ended)
	}
	return w
}

// end returns the end of a port: when, and the requests and streams that it cut.
func end(text string) (e cost.End) {
	after := 0.0
	fmt.Sscan(text, &e.Port, &after, &e.Cut, &e.Streams)
	e.At = at(after)
	return e
}

// probes returns probes of the kubelet, left out.
func probes(text string) traffic.Pattern {
	n, _ := strconv.Atoi(text)
	return traffic.Pattern{Peer: netip.MustParseAddr("10.0.0.1"), Period: time.Second, Count: n, LeftOut: true}
}

// newCost returns what the end of a server cost that died of TERM while its balancer went on.
func newCost() *Cost {
	c := &Cost{Plan: newStop().Plan, Now: at(7.4), TERM: trigger}
	c.Stop.Gate.Ceiling = 19 * time.Second
	c.Ends = []*cost.End{{Port: 8080, At: at(0.1), Cut: 3}}
	c.Refused, c.LastRefused, c.PerSecond = 41, at(3.4), []int{15, 13, 10, 3}
	c.Before = traffic.Sample{LastOther: at(0.05), LastByte: at(0.06), InUse: 3}
	c.Accepted = 120
	return c
}

// change makes changes of testdata/costs.txt.
func (c *Cost) change(steps string) {
	for step := range strings.SplitSeq(steps, ";") {
		held := 0.0
		if n, _ := fmt.Sscanf(step, "held %f", &held); n == 0 {
			set(c, strings.TrimSpace(step))
			continue
		}
		// A hold of so many seconds kept the server serving, and nothing was lost.
		c.Ends[0] = &cost.End{Port: 8080, At: at(held)}
		c.Refused, c.LastRefused, c.PerSecond = 0, time.Time{}, nil
		c.Before = traffic.Sample{LastOther: at(held - 4.1), LastByte: at(held - 4)}
	}
}
