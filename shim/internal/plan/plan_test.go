package plan_test

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/flags"
)

// newPlan returns the plan of flags and variables, and of the word terminal, where every signal can
// be caught but KILL, STOP and CHLD.
func newPlan(t *testing.T, words ...string) (*plan.Plan, error) {
	t.Helper()
	never := func(s sig.Signal) (why string) {
		if sig.SetOf(sig.KILL, sig.STOP, sig.CHLD).Has(s) {
			why = "no"
		}
		return why
	}
	cfg := flags.Read(t, words)
	cfg.Warnings = slices.Grow([]string{"the caller's"}, 1)
	return plan.New(&cfg, plan.Place{Terminal: slices.Contains(words, "terminal"), PID1: true, Uncatchable: never})
}

//go:embed testdata/plans.txt
var plans string

// TestPlan: the plan of a configuration, or the error, is as in testdata/plans.txt. The caller's
// warnings come first.
func TestPlan(t *testing.T) {
	for _, cells := range tables.Rows(plans) {
		p, err := newPlan(t, strings.Fields(cells[0])...)
		got := fmt.Sprint("error: ", err)
		if err == nil {
			got = describe(p)
			if p.Warnings[0] != "the caller's" || len(p.Config.Warnings) != 1 {
				t.Errorf("%s: %q", cells[0], p.Warnings)
			}
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
	if p.AssumedFrom != "" {
		text += " assumed"
	}
	text += fmt.Sprint("; on ", slices.Collect(p.Stop.StopSignals.All))
	if warned := strings.Join(p.Warnings[1:], "; "); warned != "" {
		text += "; warns: " + warned
		if !strings.HasSuffix(warned, p.GraceCaveat) {
			text += "; caveat: " + p.GraceCaveat
		}
	}
	return text
}

// TestPresetAdvice: the flags that caveats tell users to give are valid.
func TestPresetAdvice(t *testing.T) {
	followed := 0
	for _, p := range preset.All() {
		for _, flag := range regexp.MustCompile(`--(until|stop-schedule)=[\w/]+`).FindAllString(p.Caveat, -1) {
			followed++
			if p, err := newPlan(t, "--preset="+p.Name, "--grace-period=150s", flag); err != nil || len(p.Warnings) > 1 {
				t.Errorf("%s: %v, %v", flag, p, err)
			}
		}
	}
	if followed < 5 {
		t.Errorf("only %d flags in caveats", followed)
	}
}

// TestExitCode: an exit code is mapped once, and by a preset only after a stop.
func TestExitCode(t *testing.T) {
	for _, cells := range tables.Rows(`
		# flags | exit codes, each with what it becomes without and after a stop
		--preset=puma --exit-code=142:0 --exit-code=0:7 --exit-code=7:255 | 142 0 0, 0 7 7, 7 255 255, 1 1 1, 143 143 0
		--exit-code=1:3 --exit-code=stop:1:0 --exit-code=stop:2:0         | 1 3 0, 2 2 0, 3 3 3
	`) {
		p, err := newPlan(t, strings.Fields(cells[0])...)
		for want := range strings.SplitSeq(cells[1], ", ") {
			var code int
			fmt.Sscan(want, &code)
			if got := fmt.Sprint(code, p.ExitCode(code, false), p.ExitCode(code, true)); got != want {
				t.Errorf("%s: %s, want %s; %v", cells[0], got, want, err)
			}
		}
	}
}
