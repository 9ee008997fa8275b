package shim

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
)

// mustPlan returns the plan of a valid configuration.
func mustPlan(t *testing.T, cfg Config, terminal bool) *plan {
	t.Helper()
	p, err := newPlan(&cfg, terminal, true)
	if err != nil {
		t.Fatalf("%+v: %v", cfg, err)
	}
	return p
}

//go:embed testdata/plans.txt
var plans string

// TestPlan: the plan of a configuration, or the error, is as in testdata/plans.txt.
func TestPlan(t *testing.T) {
	for _, cells := range script.Rows(plans) {
		words := strings.Fields(cells[0])
		terminal := slices.Contains(words, "terminal")
		cfg := readConfig(t, words)
		p, err := newPlan(&cfg, terminal, true)
		got := fmt.Sprint("error: ", err)
		if err == nil {
			got = p.describe()
		}
		if got != cells[1] {
			t.Errorf("%s\n got %s\nwant %s", cells[0], got, cells[1])
		}
	}
}

// describe returns a plan in a line.
func (p *plan) describe() string {
	g := p.stop.Gate
	text := fmt.Sprintf("%v to %v", g.Floor, g.Ceiling)
	if g.Adaptive() {
		text += fmt.Sprintf(" (unseen: %v) until %s, quiet for %v, silent for %v",
			g.UnseenFloor, p.traffic.Until, p.traffic.QuietFor, p.traffic.MaxSilence)
	}
	text += fmt.Sprintf("; grace %v", p.stop.Grace)
	if p.terms.GraceAssumed {
		text += " assumed"
	}
	text += fmt.Sprint("; on ", slices.Collect(p.stop.StopSignals.All))
	if warned := strings.Join(p.Warnings, "; "); warned != "" {
		text += "; warns: " + warned
		if !strings.HasSuffix(warned, p.terms.GraceCaveat) {
			text += "; caveat: " + p.terms.GraceCaveat
		}
	}
	return text
}

// TestGraceFor: the grace period for a hold is in whole seconds, fits the hold, and is the
// shortest.
func TestGraceFor(t *testing.T) {
	for _, cells := range script.Rows(plans) {
		cfg := readConfig(t, strings.Fields(cells[0]))
		for hold := 50 * time.Millisecond; hold < time.Minute; hold += 350 * time.Millisecond {
			grace := cfg.graceFor(hold)
			if grace%time.Second != 0 || cfg.ceiling(grace) < hold || cfg.ceiling(grace-time.Second) >= hold {
				t.Fatalf("%s: %v for a hold of %v", cells[0], grace, hold)
			}
		}
	}
}

// advice finds the flags that a caveat tells users to give.
var advice = regexp.MustCompile(`--(until|stop-schedule)=([\w/]+)`)

// TestPresetAdvice: the flags that caveats advise are valid.
func TestPresetAdvice(t *testing.T) {
	followed := 0
	for _, p := range Presets() {
		for _, flag := range advice.FindAllStringSubmatch(p.Caveat, -1) {
			cfg := Config{Command: []string{"x"}, Preset: p.Name, GracePeriod: 150 * time.Second}
			if flag[1] == "until" {
				cfg.Until = Condition(flag[2])
			} else {
				cfg.Schedule = testutil.Must(ParseSchedule(flag[2]))
			}
			if warnings := mustPlan(t, cfg, false).Warnings; len(warnings) > 0 {
				t.Errorf("%s with %s: warnings %q", p.Name, flag[0], warnings)
			}
			followed++
		}
	}
	if followed < 5 {
		t.Errorf("only %d flags in caveats", followed)
	}
}

// TestUncatchableRewrites: a signal that this build cannot catch is neither rewritten nor starts
// a stop, that of no preset either.
func TestUncatchableRewrites(t *testing.T) {
	for s := sig.Signal(1); s <= sig.Max; s++ {
		why := sigcatch.Uncatchable(s)
		_, err := ParseRewrite(s.String() + ":TERM")
		for _, err := range []error{err, (&Config{StopSignals: []Signal{sig.QUIT, s}}).Validate()} {
			text := fmt.Sprint(err)
			hasReason := strings.Contains(text, s.String()) && strings.Contains(text, why)
			if (err != nil) != (why != "") || err != nil && !hasReason {
				t.Errorf("%v: %v; want an error with %q", s, err, why)
			}
		}
	}
	for _, p := range Presets() {
		for _, s := range p.StopSignals {
			if why := sigcatch.Uncatchable(s); why != "" {
				t.Errorf("%s: %v cannot start a stop: %s", p.Name, s, why)
			}
		}
	}
}

func TestConfigExits(t *testing.T) {
	p := mustPlan(t, Config{ExitCodes: []ExitMap{{From: 143, To: 0}, {From: 0, To: 7}, {From: 7, To: 255}}}, false)
	for code := range 256 {
		want := code
		if to, ok := map[int]int{143: 0, 0: 7, 7: 255}[code]; ok { // once: no chaining
			want = to
		}
		if got := p.exitCode(code, false); got != want {
			t.Errorf("exit code %d becomes %d, want %d", code, got, want)
		}
	}
}

// TestConfigWarnings: the caller's warnings come first, and the caller's list is unchanged.
func TestConfigWarnings(t *testing.T) {
	callers := append(make([]string, 0, 8), "theirs")
	p := mustPlan(t, Config{Delay: time.Minute, Warnings: callers}, false)
	if len(p.Warnings) != 2 || p.Warnings[0] != "theirs" {
		t.Errorf("warnings %q", p.Warnings)
	}
	if spare := callers[:2][1]; spare != "" {
		t.Errorf("the plan wrote %q into the caller's list", spare)
	}
}
