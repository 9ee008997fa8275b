package traffic_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil/world"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// s returns a number of seconds as a time.Duration.
var s = world.Seconds

// TestVerdicts: each condition is met in time, and not before.
func TestVerdicts(t *testing.T) {
	for _, r := range world.ReadRows(t, "testdata/verdicts.txt") {
		t.Run(r.Name, func(t *testing.T) {
			if got, _ := r.World.Until(world.Never, r.Cond); got < r.At || got > r.At+2*r.World.Poll {
				t.Errorf("after %v, want %v", got, r.At)
			}
		})
	}
}

// TestCause: the sample names what the condition waited for.
func TestCause(t *testing.T) {
	for _, r := range world.ReadRows(t, "testdata/causes.txt") {
		t.Run(r.Name, func(t *testing.T) {
			_, hold := r.World.Until(r.At, r.Cond)
			c := hold.Cause
			want, at, _ := strings.Cut(r.Want, " at ")
			if got := describe(c, hold.Verdict); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			wantAt, err := strconv.ParseFloat(at, 64)
			if at != "" && (err != nil || (c.At.Sub(world.Start)-s(wantAt)).Abs() > s(0.3)) {
				t.Errorf("at %v, want %s s", c.At.Sub(world.Start), at)
			}
		})
	}
}

// TestFigures: the figures for the report.
func TestFigures(t *testing.T) {
	for _, r := range world.ReadRows(t, "testdata/figures.txt") {
		t.Run(r.Name, func(t *testing.T) {
			_, hold := r.World.Until(r.At, r.Cond)
			got := figures(hold)
			for word := range strings.FieldsSeq(r.Want) {
				if !slices.Contains(got, word) {
					t.Errorf("%s; want %s", got, word)
				}
			}
		})
	}
}

// figures returns a sample in words, with times in seconds from the trigger.
func figures(r *world.Hold) []string {
	after := func(at time.Time) float64 { return max(at.Sub(world.Start).Seconds(), 0) }
	text := fmt.Sprintf("accepted=%d more=%v open=%d in-flight=%d in-use=%d streams=%d at-risk=%d",
		r.Accepted, r.More, r.Open, r.InFlight, r.InUse, r.Streams, r.AtRisk)
	text += fmt.Sprintf(" last-new=%v last-other=%v last-use=%v %+v seconds=",
		after(r.LastNew), after(r.LastOther), after(r.LastUse), r.LeftOut)
	text = strings.NewReplacer("{", "", "}", "").Replace(text) + strings.ReplaceAll(fmt.Sprint(r.PerSecond), " ", ",")
	var ports []string
	for _, p := range r.Patterns {
		ports = append(ports, fmt.Sprint(p.Port))
		text += fmt.Sprintf(" %v,%d,%v,%d", p.Peer, p.Received, p.Period, p.Count)
	}
	return append(strings.Fields(text), "patterns:"+strings.Join(ports, ","))
}

// describe returns a cause in words, without its time.
func describe(c traffic.Cause, v traffic.Verdict) string {
	text := [...]string{"none", "new", "bytes", "requests", "probe", "queue", "open"}[c.Kind]
	if c.Peer.IsValid() {
		text += " " + c.Peer.String()
	}
	if c.Port != 0 {
		text += fmt.Sprintf(":%d", c.Port)
	}
	if c.Connections != 0 {
		text += fmt.Sprintf(" n=%d", c.Connections)
	}
	if c.Period != 0 {
		text += fmt.Sprintf(" period=%v bytes=%d", c.Period, c.Received)
	}
	if c.Unanswered {
		text += " unanswered"
	}
	if v.Active {
		text += " active"
	}
	return text
}
