package plan_test

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/flags"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
)

// place returns where every signal can be caught but KILL, STOP and CHLD.
func place(terminal bool) plan.Place {
	never := func(s sig.Signal) (why string) {
		if sig.SetOf(sig.KILL, sig.STOP, sig.CHLD).Has(s) {
			why = "no"
		}
		return why
	}
	return plan.Place{Terminal: terminal, PID1: true, Uncatchable: never}
}

// mustPlan returns the plan of a valid configuration.
func mustPlan(t *testing.T, cfg plan.Config) *plan.Plan {
	t.Helper()
	p, err := plan.New(&cfg, place(false), nil)
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
		cfg := flags.Read(t, words)
		p, err := plan.New(&cfg, place(terminal), nil)
		got := fmt.Sprint("error: ", err)
		if err == nil {
			got = describe(p)
		}
		if got != cells[1] {
			t.Errorf("%s\n got %s\nwant %s", cells[0], got, cells[1])
		}
	}
}

// describe returns a plan in a line.
func describe(p *plan.Plan) string {
	g := p.Stop.Gate
	text := fmt.Sprintf("%v to %v", g.Floor, g.Ceiling)
	if g.Adaptive() {
		text += fmt.Sprintf(" (unseen: %v) until %s, quiet for %v, silent for %v",
			g.UnseenFloor, p.Traffic.Until, p.Traffic.QuietFor, p.Traffic.MaxSilence)
	}
	text += fmt.Sprintf("; grace %v", p.Stop.Grace)
	if p.Terms.GraceAssumed {
		text += " assumed"
	}
	text += fmt.Sprint("; on ", slices.Collect(p.Stop.StopSignals.All))
	if warned := strings.Join(p.Warnings, "; "); warned != "" {
		text += "; warns: " + warned
		if !strings.HasSuffix(warned, p.Terms.GraceCaveat) {
			text += "; caveat: " + p.Terms.GraceCaveat
		}
	}
	return text
}

// TestGraceFor: the grace period for a hold is in whole seconds, fits the hold, and is the
// shortest.
func TestGraceFor(t *testing.T) {
	for _, cells := range script.Rows(plans) {
		cfg := flags.Read(t, strings.Fields(cells[0]))
		for hold := 50 * time.Millisecond; hold < time.Minute; hold += 350 * time.Millisecond {
			grace := plan.GraceFor(&cfg, hold)
			if grace%time.Second != 0 || plan.Ceiling(&cfg, grace) < hold || plan.Ceiling(&cfg, grace-time.Second) >= hold {
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
	for _, p := range preset.All() {
		for _, flag := range advice.FindAllStringSubmatch(p.Caveat, -1) {
			cfg := plan.Config{Command: []string{"x"}, Preset: p.Name, GracePeriod: 150 * time.Second}
			if flag[1] == "until" {
				cfg.Until = stop.Reason(flag[2])
			} else {
				cfg.Schedule, _ = stop.ParseSchedule(flag[2])
				if cfg.Schedule == nil {
					t.Errorf("%s: %s is no schedule", p.Name, flag[2])
				}
			}
			if warnings := mustPlan(t, cfg).Warnings; len(warnings) > 0 {
				t.Errorf("%s with %s: warnings %q", p.Name, flag[0], warnings)
			}
			followed++
		}
	}
	if followed < 5 {
		t.Errorf("only %d flags in caveats", followed)
	}
}

func TestConfigExits(t *testing.T) {
	p := mustPlan(t, plan.Config{ExitCodes: []preset.ExitCode{{From: 143, To: 0}, {From: 0, To: 7}, {From: 7, To: 255}}})
	for code := range 256 {
		want := code
		if to, ok := map[int]int{143: 0, 0: 7, 7: 255}[code]; ok { // once: no chaining
			want = to
		}
		if got := p.ExitCode(code, false); got != want {
			t.Errorf("exit code %d becomes %d, want %d", code, got, want)
		}
	}
}

// TestConfigWarnings: the caller's warnings come first, and the caller's list is unchanged.
func TestConfigWarnings(t *testing.T) {
	callers := append(make([]string, 0, 8), "theirs")
	p := mustPlan(t, plan.Config{Delay: time.Minute, Warnings: callers})
	if len(p.Warnings) != 2 || p.Warnings[0] != "theirs" {
		t.Errorf("warnings %q", p.Warnings)
	}
	if spare := callers[:2][1]; spare != "" {
		t.Errorf("the plan wrote %q into the caller's list", spare)
	}
}
