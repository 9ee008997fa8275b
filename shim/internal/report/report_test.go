package report

import (
	"slices"
	"strings"
	"testing"
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
