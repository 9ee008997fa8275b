package shim

import (
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// TestGraceAdaptive: what a hold that waits for silence is like, where it fits and
// where what was given wins over an assumed grace period.
func TestGraceAdaptive(t *testing.T) {
	const s = time.Second
	in := func(grace time.Duration, c Config) Config {
		c.GracePeriod, c.Until = grace, Quiet
		return c
	}
	for name, c := range map[string]struct {
		cfg                           Config
		floor, ceiling, quiet, silent time.Duration
		caveat                        string
	}{
		"30 s":                      {in(30*s, Config{}), 5 * s, 19 * s, 3 * s, 9500 * time.Millisecond, ""},
		"90 s":                      {in(90*s, Config{}), 5 * s, 79 * s, 3 * s, 30 * s, ""},
		"6 s":                       {in(6*s, Config{}), 1500 * time.Millisecond, 3 * s, 1500 * time.Millisecond, 1500 * time.Millisecond, ""},
		"no floor":                  {in(30*s, Config{DelayGiven: true}), 0, 19 * s, 3 * s, 9500 * time.Millisecond, ""},
		"all given":                 {in(30*s, Config{Delay: 8 * s, DelayGiven: true, MaxDelay: 15 * s, QuietFor: s, MaxSilence: 60 * s}), 8 * s, 15 * s, s, 60 * s, ""},
		"a low ceiling":             {in(30*s, Config{MaxDelay: 4 * s}), 2 * s, 4 * s, 2 * s, 2 * s, ""},
		"assumed":                   {in(0, Config{Env: []string{"KUBERNETES_SERVICE_HOST=1"}}), 5 * s, 19 * s, 3 * s, 9500 * time.Millisecond, ""},
		"a floor over an assumed":   {in(0, Config{Delay: 10 * s, DelayGiven: true}), 10 * s, 16 * s, 3 * s, 8 * s, "assumed grace period 10s ends first"},
		"a silence over an assumed": {in(0, Config{QuietFor: 8 * s}), 5 * s, 21 * s, 8 * s, 10500 * time.Millisecond, "assumed grace period 10s ends first"},
		"a ceiling over an assumed": {in(0, Config{MaxDelay: 8 * s}), 4 * s, 8 * s, 3 * s, 4 * s, "assumed grace period 10s leaves the command 2s to stop"},
	} {
		p := mustPlan(t, c.cfg, false)
		g := p.stop.Gate
		if g.Floor != c.floor || g.Ceiling != c.ceiling || g.Until != stop.Quiet || p.traffic.QuietFor != c.quiet || p.traffic.MaxSilence != c.silent {
			t.Errorf("%s: %v to %v until %q, quiet for %v, silent for %v", name, g.Floor, g.Ceiling, g.Until, p.traffic.QuietFor, p.traffic.MaxSilence)
		}
		if !strings.HasPrefix(p.caveat, c.caveat) || (p.caveat == "") != (c.caveat == "") {
			t.Errorf("%s: caveat %q, want %q", name, p.caveat, c.caveat)
		}
	}
	wantError(t, in(30*s, Config{MaxDelay: 20 * s}), "--max-delay=20s", "--grace-period=30s", "a grace period of 31s")
	wantError(t, in(30*s, Config{QuietFor: 20 * s}), "--quiet-for=20s", "--grace-period=30s", "a grace period of 31s")
	wantError(t, in(30*s, Config{Delay: 9 * s, MaxDelay: 8 * s}), "--delay=9s", "above --max-delay=8s")
	wantError(t, in(0, Config{QuietFor: 9 * s, MaxDelay: 8 * s}), "--quiet-for=9s", "above --max-delay=8s")
}
