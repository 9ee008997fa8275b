package shim

import (
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestGraceAdaptive: the times of an adaptive hold that fits, and of holds whose given
// times win over an assumed grace period.
func TestGraceAdaptive(t *testing.T) {
	const s = time.Second
	in := func(grace time.Duration, c Config) Config {
		c.GracePeriod, c.Until = grace, Quiet
		return c
	}
	for name, c := range map[string]struct {
		cfg                                   Config
		floor, unseen, ceiling, quiet, silent time.Duration
		caveat                                string
	}{
		"30 s":                      {in(30*s, Config{}), 0, 5 * s, 19 * s, 4 * s, 30 * s, ""},
		"90 s":                      {in(90*s, Config{}), 0, 5 * s, 79 * s, 4 * s, 30 * s, ""},
		"6 s":                       {in(6*s, Config{}), 0, 3 * s, 3 * s, 1500 * time.Millisecond, 30 * s, ""},
		"a floor of zero":           {in(30*s, Config{DelayGiven: true}), 0, 0, 19 * s, 4 * s, 30 * s, ""},
		"a floor":                   {in(30*s, Config{Delay: 8 * s, DelayGiven: true}), 8 * s, 8 * s, 19 * s, 4 * s, 30 * s, ""},
		"all given":                 {in(30*s, Config{Delay: 8 * s, DelayGiven: true, MaxDelay: 15 * s, QuietFor: s, MaxSilence: 60 * s}), 8 * s, 15 * s, 15 * s, s, 60 * s, ""},
		"a low ceiling":             {in(30*s, Config{MaxDelay: 4 * s}), 0, 4 * s, 4 * s, 2 * s, 30 * s, ""},
		"assumed":                   {in(0, Config{Env: []string{"KUBERNETES_SERVICE_HOST=1"}}), 0, 5 * s, 19 * s, 4 * s, 30 * s, ""},
		"a floor over an assumed":   {in(0, Config{Delay: 10 * s, DelayGiven: true}), 10 * s, 10 * s, 18 * s, 4 * s, 30 * s, "assumed grace period 10s ends first"},
		"a silence over an assumed": {in(0, Config{QuietFor: 8 * s}), 0, 5 * s, 16 * s, 8 * s, 30 * s, "assumed grace period 10s ends first"},
		"both over an assumed":      {in(0, Config{Delay: 3 * s, DelayGiven: true, QuietFor: 8 * s}), 3 * s, 3 * s, 19 * s, 8 * s, 30 * s, "assumed grace period 10s ends first"},
		"a ceiling over an assumed": {in(0, Config{MaxDelay: 8 * s}), 0, 8 * s, 8 * s, 4 * s, 30 * s, "assumed grace period 10s leaves the command 2s to stop"},
	} {
		p := mustPlan(t, c.cfg, false)
		g := p.stop.Gate
		if g.Floor != c.floor || g.UnseenFloor != c.unseen || g.Ceiling != c.ceiling || g.Until != stop.Quiet || p.traffic.QuietFor != c.quiet || p.traffic.MaxSilence != c.silent {
			t.Errorf("%s: %v (unseen: %v) to %v until %q, quiet for %v, silent for %v", name, g.Floor, g.UnseenFloor, g.Ceiling, g.Until, p.traffic.QuietFor, p.traffic.MaxSilence)
		}
		if !strings.HasPrefix(p.terms.GraceCaveat, c.caveat) || (p.terms.GraceCaveat == "") != (c.caveat == "") {
			t.Errorf("%s: caveat %q, want %q", name, p.terms.GraceCaveat, c.caveat)
		}
	}
	wantError(t, in(30*s, Config{MaxDelay: 20 * s}), "--max-delay=20s", "--grace-period=30 (LAMEDUCK_GRACE_PERIOD)", "a grace period of 31 s")
	wantError(t, in(30*s, Config{QuietFor: 20 * s}), "--quiet-for=20s", "--grace-period=30 (LAMEDUCK_GRACE_PERIOD)", "a grace period of 31 s")
	wantError(t, in(30*s, Config{Delay: 9 * s, MaxDelay: 8 * s}), "--delay=9s", "longer than --max-delay=8s (LAMEDUCK_MAX_DELAY)")
	wantError(t, in(0, Config{QuietFor: 9 * s, MaxDelay: 8 * s}), "--quiet-for=9s", "longer than --max-delay=8s (LAMEDUCK_MAX_DELAY)")
}

// TestTrafficCondition: the traffic's summary explains the condition of the hold.
func TestTrafficCondition(t *testing.T) {
	for _, until := range []Condition{Elapsed, Settled, Quiet, Drained} {
		if got := mustPlan(t, Config{Until: until, GracePeriod: time.Minute}, false).traffic.Until; got != until {
			t.Errorf("until %q: %q", until, got)
		}
	}
}

// graceSchedules are schedules with their grace periods.
var graceSchedules = []struct {
	schedule   string
	kill       time.Duration
	linger     time.Duration
	grace      time.Duration // the grace period
	most       time.Duration // the longest hold
	refused    string        // the error with the grace period given
	caveat     string        // the caveat with 10 s assumed
	thenCaveat string        // the caveat with 10 s assumed and a delay of 2 s
}{
	{"TERM", 0, 0, 60 * time.Second, 49 * time.Second, "", "", ""},
	{"TERM", 0, 0, 12 * time.Second, ceilingOfThird(12 * time.Second), "", "", ""},
	{"USR1/5/TERM", 0, 0, 60 * time.Second, 49 * time.Second, "", "", ""},
	{"USR1/30/TERM", 0, 0, 60 * time.Second, 29 * time.Second, "", "ends first", "ends first"},
	{"USR1/30/TERM/20", 0, 0, 60 * time.Second, 29 * time.Second, "", "ends first", "ends first"},
	{"USR1/5/TERM/forever/HUP/60", 0, 0, 60 * time.Second, 49 * time.Second, "", "", ""},
	{"USR1/30/TERM/5/KILL", 0, 0, 60 * time.Second, 24 * time.Second, "", "ends first", "ends first"},
	{"USR1/30/TERM/5/KILL", 0, 0, 36 * time.Second, 0, "", "ends first", "ends first"},
	{"USR1/30/TERM/5/KILL", 0, 0, 35 * time.Second, -time.Second, "--stop-schedule=USR1/30s/TERM/5s/KILL (LAMEDUCK_STOP_SCHEDULE) does not fit into --grace-period=35 (LAMEDUCK_GRACE_PERIOD), which leaves 0s for the hold: give less, or a grace period of 36 s", "ends first", "ends first"},
	{"TERM/2/KILL", 0, 0, 60 * time.Second, 57 * time.Second, "", "", ""},
	{"TERM/8/KILL", 0, 0, 60 * time.Second, 51 * time.Second, "", "", "ends first"},
	{"KILL", 0, 0, 60 * time.Second, 59 * time.Second, "", "", ""},
	{"30", 0, 0, 60 * time.Second, 29 * time.Second, "", "ends first", "ends first"},
	{"", 5 * time.Second, 0, 60 * time.Second, 54 * time.Second, "", "", ""},
	{"", 8 * time.Second, 0, 60 * time.Second, 51 * time.Second, "", "", "ends first"},
	{"", 20 * time.Second, 0, 20 * time.Second, -time.Second, "--kill-after=20s (LAMEDUCK_KILL_AFTER) does not fit into --grace-period=20 (LAMEDUCK_GRACE_PERIOD), which leaves 0s for the hold: give less, or a grace period of 21 s", "ends first", "ends first"},
	{"TERM/4/QUIT", 5 * time.Second, 0, 60 * time.Second, 54 * time.Second, "", "", ""}, // KILL is the last
	{"TERM/5/KILL", 0, 10 * time.Second, 60 * time.Second, 44 * time.Second, "", "ends first", "ends first"},
	{"", 0, 4 * time.Second, 60 * time.Second, 45 * time.Second, "", "", "leaves the command 4s to stop"},
	{"20/TERM/5/KILL", 0, 0, 60 * time.Second, 34 * time.Second, "", "ends first", "ends first"},
	{"20/TERM", 0, 0, 60 * time.Second, 29 * time.Second, "", "ends first", "ends first"},
	{"30/TERM", 0, 0, 20 * time.Second, ceilingOfThird(20*time.Second) - 30*time.Second, "--stop-schedule=30s/TERM (LAMEDUCK_STOP_SCHEDULE) does not fit into --grace-period=20 (LAMEDUCK_GRACE_PERIOD), which leaves 0s for the hold: give less, or a grace period of 41 s", "ends first", "ends first"},
}

// ceilingOfThird returns the ceiling for a grace period of which a third is reserved.
func ceilingOfThird(grace time.Duration) time.Duration { return grace - grace/3 - time.Second }

// TestGraceSchedule: the longest hold beside a schedule, a KILL or a linger; the error if
// the given grace period is too short, and the warning if the assumed one is.
func TestGraceSchedule(t *testing.T) {
	const s = time.Second
	for _, c := range graceSchedules {
		cfg := Config{KillAfter: c.kill, Linger: c.linger}
		if c.schedule != "" {
			cfg.Schedule = testutil.Must(ParseSchedule(c.schedule))
		}
		if got := cfg.ceiling(c.grace); got != c.most {
			t.Errorf("%+v: %v is left for the hold", c, got)
		}
		for delay, want := range map[time.Duration]string{0: c.caveat, 2 * s: c.thenCaveat} {
			cfg.Delay = delay
			cfg.GracePeriod = 0
			p := mustPlan(t, cfg, false)
			if !strings.Contains(p.terms.GraceCaveat, want) || (p.terms.GraceCaveat == "") != (want == "") || (len(p.Warnings) == 1) != (want != "") {
				t.Errorf("%+v, after %v: caveat %q, warnings %q", c, delay, p.terms.GraceCaveat, p.Warnings)
			}
		}
		cfg.Delay, cfg.GracePeriod = 0, c.grace
		if c.refused != "" {
			wantError(t, cfg, c.refused)
		} else {
			mustPlan(t, cfg, false)
		}
		cfg.GracePeriod = cfg.graceFor(0)
		mustPlan(t, cfg, false)
		cfg.Delay, cfg.GracePeriod = 7*s, cfg.graceFor(7*s)
		mustPlan(t, cfg, false)
		cfg.GracePeriod -= s
		wantError(t, cfg, "does not fit")
	}
}

// TestGraceInSeconds: a grace period is said in seconds, as the fields of orchestrators
// take it.
func TestGraceInSeconds(t *testing.T) {
	const s = time.Second
	wantError(t, Config{Delay: 90 * s, GracePeriod: 100 * s}, "--delay=1m30s (LAMEDUCK_DELAY) does not fit into --grace-period=100 (LAMEDUCK_GRACE_PERIOD), which leaves 1m29s for the hold: give less, or a grace period of 101 s")
	wantError(t, Config{Delay: 2 * s, GracePeriod: 1500 * time.Millisecond}, "--grace-period=1.5 (LAMEDUCK_GRACE_PERIOD),", "a grace period of 5 s")
	wantError(t, Config{OnStop: []string{"x"}, GracePeriod: 60 * s, KillAfter: 59 * s}, "give a grace period of 61 s or more")
}

// TestGraceNothing: an adaptive hold needs some time.
func TestGraceNothing(t *testing.T) {
	const s = time.Second
	wantError(t, Config{Until: Quiet, GracePeriod: s}, "--until=quiet (LAMEDUCK_UNTIL) does not fit into --grace-period=1 (LAMEDUCK_GRACE_PERIOD)", "a grace period of 3 s")
	wantError(t, Config{Until: Quiet, GracePeriod: 10 * s, KillAfter: 9 * s}, "--kill-after=9s (LAMEDUCK_KILL_AFTER) does not fit into --grace-period=10 (LAMEDUCK_GRACE_PERIOD)", "a grace period of 11 s")
	if p := mustPlan(t, Config{Until: Quiet, KillAfter: 9 * s}, false); p.stop.Gate.Ceiling != 8*s || !strings.Contains(p.terms.GraceCaveat, "ends first") {
		t.Errorf("over an assumed one: %v, %q", p.stop.Gate.Ceiling, p.terms.GraceCaveat)
	}
	wantError(t, Config{OnStop: []string{"x"}, GracePeriod: 10 * s, KillAfter: 9 * s}, "leaves no time for the hold")
	mustPlan(t, Config{GracePeriod: s, Preset: "nginx"}, false)
}
