package traffic_test

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/world"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// s returns a number of seconds as a time.Duration.
var s = world.Seconds

//go:embed testdata/verdicts.txt
var verdicts string

//go:embed testdata/causes.txt
var causes string

//go:embed testdata/figures.txt
var figures string

// TestVerdicts: each condition is met in time, and not before.
func TestVerdicts(t *testing.T) {
	for _, r := range world.Rows(verdicts) {
		t.Run(r.Name, func(t *testing.T) {
			if got, _ := r.World.Until(world.Never, r.Cond); got < r.At || got > r.At+2*r.World.Poll {
				t.Errorf("after %v, want %v", got, r.At)
			}
		})
	}
}

// TestCause: the sample names what the condition waited for.
func TestCause(t *testing.T) {
	kinds := strings.Fields("none new bytes requests probe queue open")
	for _, r := range world.Rows(causes) {
		t.Run(r.Name, func(t *testing.T) {
			_, hold := r.World.Until(r.At, r.Cond)
			c := hold.Cause
			want, at, _ := strings.Cut(r.Want, " at ")
			words := append([]string{kinds[c.Kind]}, tables.Differing(traffic.Cause{Kind: c.Kind, At: c.At}, c)...)
			if hold.Active {
				words = append(words, "active")
			}
			if got := strings.Join(words, " "); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			wantAt, err := strconv.ParseFloat(at, 64)
			if at != "" && (err != nil || (c.At.Sub(world.Start)-s(wantAt)).Abs() > s(0.3)) {
				t.Errorf("at %v, want %s s", c.At.Sub(world.Start), at)
			}
		})
	}
}

// TestFigures: the figures for the report, with times in seconds.
func TestFigures(t *testing.T) {
	for _, r := range world.Rows(figures) {
		t.Run(r.Name, func(t *testing.T) {
			_, hold := r.World.Until(r.At, r.Cond)
			var ports []uint16
			for _, p := range hold.Patterns {
				ports = append(ports, p.Port)
			}
			hold.Cause = traffic.Cause{}
			got := strings.ReplaceAll(fmt.Sprintf("seconds=%v;ports=%v", hold.PerSecond, ports), " ", ",")
			got = fmt.Sprintf("%+v;%s", hold.Sample, got)
			got = strings.NewReplacer("2026-01-01 00:00:", "", "0001-01-01 00:00:00", "never", ";", " ").Replace(got)
			if lacking := tables.Lacking(got, r.Want); len(lacking) > 0 {
				t.Errorf("want %s; got %s", lacking, got)
			}
		})
	}
}
