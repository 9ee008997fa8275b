package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

func repeat(n, times int) []int { return slices.Repeat([]int{n}, times) }

// TestSparkline: a sparkline has a bar for each second, or for several seconds so that 30
// bars are enough. Zero is the lowest bar, the greatest sum the highest.
func TestSparkline(t *testing.T) {
	const huge = 1 << 40
	for _, c := range []struct {
		news []int
		want string
	}{
		{nil, ""},
		{[]int{0}, "▁"},
		{[]int{1}, "█"},
		{[]int{0, 0, 0}, "▁▁▁"},
		{[]int{0, 1, 2, 3, 4, 5, 6, 7}, "▁▂▃▄▅▆▇█"},
		{[]int{1, 1000}, "▂█"},
		{[]int{huge, 0, 1, huge / 2}, "█▁▂▅"},
		{repeat(3, 30), strings.Repeat("█", 30)},
		{append(repeat(3, 30), 3), strings.Repeat("█", 15) + "▅"},
		{append(repeat(0, 59), 1), strings.Repeat("▁", 29) + "█"},
		{repeat(huge, 3600), strings.Repeat("█", 30)},
	} {
		if got := Sparkline(c.news); got != c.want {
			t.Errorf("of %d seconds %s, want %s", len(c.news), got, c.want)
		}
	}
	for n := range 4000 {
		if got := []rune(Sparkline(repeat(1, n))); len(got) > Columns || n >= Columns && len(got) <= Columns/2 {
			t.Errorf("of %d seconds %d bars", n, len(got))
		}
	}
}

func TestPortList(t *testing.T) {
	for want, ports := range map[string][]uint16{
		"": nil, "53": {53}, "53, 8125": {53, 8125}, "1, 2, 3, 4, 5, 6, 7, 8": {1, 2, 3, 4, 5, 6, 7, 8},
		"1, 2, 3, 4, 5, 6, 7, 8 and 2 more": {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
	} {
		if got := PortList(ports); got != want {
			t.Errorf("%v is %q, want %q", ports, got, want)
		}
	}
}

// TestLongSchedule: the line for the trigger names the first signal of a schedule for which
// the line has no room, and the number of the other signals.
func TestLongSchedule(t *testing.T) {
	for first, others := range map[string]int{"TERM": 16, "30s/TERM": 16} {
		schedule, err := stop.ParseSchedule(first + strings.Repeat("/10s/RTMIN+10", others) + "/1s")
		if err != nil {
			t.Fatal(err)
		}
		for _, floor := range []time.Duration{0, time.Second} {
			s := &Stop{Terms: Terms{StopConfig: &stop.Config{Gate: stop.Gate{Floor: floor}}}, Record: stop.Record{Trigger: sig.TERM, Steps: schedule}}
			line, want := s.Announcement(), fmt.Sprintf(" %s and %d more", first, others)
			if width(line) > room || !strings.Contains(line, want) {
				t.Errorf("line %q, want %q in it, and at most %d characters", line, want, room)
			}
		}
	}
}

// TestLateReport: without --linger, the line for the end does not name descendants, even if
// lameduck stood still between the command's exit and the report.
func TestLateReport(t *testing.T) {
	began := time.Unix(1_000_000_000, 0)
	for linger, want := range map[time.Duration]bool{0: false, 3 * time.Second: true} {
		s := &Stop{
			Terms:  Terms{StopConfig: &stop.Config{Gate: stop.Gate{Floor: time.Second}, Grace: 30 * time.Second, Linger: linger}},
			Record: stop.Record{Trigger: sig.TERM, TriggeredAt: began, EndedAt: began.Add(time.Second), Ended: stop.Elapsed, ExitedAt: began.Add(time.Second)},
			Now:    began.Add(2 * time.Second),
		}
		if line := s.Conclusion(); strings.Contains(line, ", its descendants at +2.0 s of 30 s") != want {
			t.Errorf("--linger=%v: line %q; descendants wanted: %v", linger, line, want)
		}
	}
}
