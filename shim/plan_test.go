package shim

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
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

// rewrites parses a list of FROM:TO.
func rewrites(t *testing.T, words string) (list []Rewrite) {
	t.Helper()
	for word := range strings.FieldsSeq(words) {
		r, err := ParseRewrite(word)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// wantError expects an error of one line that contains all of says.
func wantError(t *testing.T, cfg Config, says ...string) {
	t.Helper()
	err := cfg.Validate()
	if err == nil {
		t.Errorf("%+v is no error", cfg)
		return
	}
	for _, part := range says {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q; want %q in it", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is not one line", err)
	}
}

func TestGraceCeiling(t *testing.T) {
	for grace, want := range map[time.Duration]time.Duration{
		time.Second:       -time.Second / 3, // nothing is left
		5 * time.Second:   5*time.Second - 5*time.Second/3 - time.Second,
		10 * time.Second:  10*time.Second - 10*time.Second/3 - time.Second,
		30 * time.Second:  19 * time.Second,
		60 * time.Second:  49 * time.Second,
		120 * time.Second: 109 * time.Second,
	} {
		for _, linger := range []time.Duration{0, time.Second, time.Minute} {
			if got := (&Config{Linger: linger}).ceiling(grace); got != want-linger {
				t.Errorf("ceiling(%v, %v) = %v, want %v", grace, linger, got, want-linger)
			}
		}
	}
}

// TestGraceFor: the grace period is in whole seconds, fits the hold, and is the shortest.
func TestGraceFor(t *testing.T) {
	for hold := 50 * time.Millisecond; hold < 3*time.Minute; hold += 50 * time.Millisecond {
		for _, linger := range []time.Duration{0, 1500 * time.Millisecond, time.Minute} {
			cfg := Config{Linger: linger}
			grace := cfg.graceFor(hold)
			if grace%time.Second != 0 || cfg.ceiling(grace) < hold || cfg.ceiling(grace-time.Second) >= hold {
				t.Fatalf("graceFor(%v, %v) = %v", hold, linger, grace)
			}
		}
	}
	for hold, want := range map[time.Duration]time.Duration{
		19 * time.Second:                  30 * time.Second,
		19*time.Second + time.Millisecond: 31 * time.Second,
		time.Hour:                         time.Hour + 11*time.Second,
	} {
		if got := (&Config{}).graceFor(hold); got != want {
			t.Errorf("graceFor(%v) = %v, want %v", hold, got, want)
		}
	}
}

func TestGraceAssumed(t *testing.T) {
	for _, c := range []struct {
		env  string
		want time.Duration
	}{
		{"", 10 * time.Second},
		{"KUBERNETES_SERVICE_HOST=10.0.0.1", 30 * time.Second},
		{"ECS_CONTAINER_METADATA_URI_V4=http://169.254.170.2/v4/x", 30 * time.Second},
		{"NOMAD_ALLOC_ID=5fc98185", 5 * time.Second},
		{"NOMAD_ALLOC_ID=5fc98185 KUBERNETES_SERVICE_HOST=10.0.0.1", 30 * time.Second},
		{"KUBERNETES_SERVICE_HOST=", 10 * time.Second},
		{"ECS_CONTAINER_METADATA_URI_V4= NOMAD_ALLOC_ID=5fc98185", 5 * time.Second},
		{"NOMAD_ALLOC_ID=", 10 * time.Second},
		{"NOMAD_ALLOC_ID", 10 * time.Second},
		{"KUBERNETES_SERVICE_HOSTS=1 MY_NOMAD_ALLOC_ID=1 ECS_CONTAINER_METADATA_URI=1", 10 * time.Second},
	} {
		p := mustPlan(t, Config{Env: strings.Fields(c.env)}, false)
		if p.stop.Grace != c.want || !p.terms.GraceAssumed {
			t.Errorf("with %q the grace period is %v (assumed: %v), want %v", c.env, p.stop.Grace, p.terms.GraceAssumed, c.want)
		}
	}
	p := mustPlan(t, Config{Env: []string{"NOMAD_ALLOC_ID=1"}, Delay: 1, GracePeriod: 40 * time.Second}, false)
	if p.stop.Grace != 40*time.Second || p.terms.GraceAssumed {
		t.Errorf("one that was given became %v (assumed: %v)", p.stop.Grace, p.terms.GraceAssumed)
	}
}

// TestGraceGiven: nothing may exceed a given grace period, by any margin.
func TestGraceGiven(t *testing.T) {
	for _, c := range []struct{ delay, grace, needs time.Duration }{
		{19 * time.Second, 30 * time.Second, 0},
		{19*time.Second + 1, 30 * time.Second, 31 * time.Second},
		{20 * time.Second, 30 * time.Second, 31 * time.Second},
		{30 * time.Second, 30 * time.Second, 41 * time.Second},
		{2 * time.Second, 5 * time.Second, 0},
		{3 * time.Second, 5 * time.Second, 6 * time.Second},
		{0, time.Second, 0},
		{time.Millisecond, time.Second, 2 * time.Second},
		{time.Hour, 2 * time.Hour, 0},
	} {
		cfg := Config{Delay: c.delay, GracePeriod: c.grace}
		if c.needs > 0 {
			wantError(t, cfg, "--delay="+c.delay.String(), "--grace-period="+fmt.Sprint(c.grace.Seconds())+" (LAMEDUCK_GRACE_PERIOD),", "a grace period of "+fmt.Sprint(c.needs.Seconds())+" s")
			continue
		}
		if p := mustPlan(t, cfg, false); p.stop.Gate.Floor != c.delay || p.terms.GraceCaveat != "" || len(p.Warnings) > 0 {
			t.Errorf("--delay=%v in %v: holds %v, caveat %q, warnings %q", c.delay, c.grace, p.stop.Gate.Floor, p.terms.GraceCaveat, p.Warnings)
		}
	}
}

// TestGraceOver: a hold that does not fit an assumed grace period lasts as long as asked,
// with one warning, which is repeated at the trigger as the caveat.
func TestGraceOver(t *testing.T) {
	for _, c := range []struct {
		delay time.Duration
		env   string
		says  string // "": the hold fits
	}{
		{0, "", ""},
		{5 * time.Second, "", ""},
		{6 * time.Second, "", "assumed grace period 10s leaves the command 4s to stop"},
		{9 * time.Second, "", "assumed grace period 10s leaves the command 1s to stop"},
		{10 * time.Second, "", "assumed grace period 10s ends first"},
		{time.Hour, "", "assumed grace period 10s ends first"},
		{19 * time.Second, "KUBERNETES_SERVICE_HOST=1", ""},
		{20 * time.Second, "KUBERNETES_SERVICE_HOST=1", "assumed grace period 30s leaves the command 10s to stop"},
		{4 * time.Second, "NOMAD_ALLOC_ID=1", "assumed grace period 5s leaves the command 1s to stop"},
	} {
		p := mustPlan(t, Config{Delay: c.delay, Env: []string{c.env}}, false)
		if p.stop.Gate.Floor != c.delay {
			t.Errorf("--delay=%v holds %v", c.delay, p.stop.Gate.Floor)
		}
		if c.says == "" {
			if p.terms.GraceCaveat != "" || len(p.Warnings) > 0 {
				t.Errorf("--delay=%v %s: caveat %q, warnings %q", c.delay, c.env, p.terms.GraceCaveat, p.Warnings)
			}
			continue
		}
		if !strings.HasPrefix(p.terms.GraceCaveat, c.says) || !strings.Contains(p.terms.GraceCaveat, "--grace-period") || !strings.Contains(p.terms.GraceCaveat, "docker stop -t") {
			t.Errorf("--delay=%v %s: caveat %q, want %q and what to do", c.delay, c.env, p.terms.GraceCaveat, c.says)
		}
		if want := "--delay=" + c.delay.String() + " (LAMEDUCK_DELAY): " + p.terms.GraceCaveat; !slices.Equal(p.Warnings, []string{want}) {
			t.Errorf("warnings %q, want %q", p.Warnings, want)
		}
	}
}

func TestConfigStops(t *testing.T) {
	for _, c := range []struct {
		rewrites string
		given    []Signal
		terminal bool
		want     sig.Set
		warns    string
	}{
		{want: sig.SetOf(sig.TERM)},
		{rewrites: "TERM:USR1", want: sig.SetOf(sig.TERM, sig.USR1)},
		{rewrites: "TERM:QUIT", given: []Signal{sig.HUP}, want: sig.SetOf(sig.TERM, sig.QUIT, sig.HUP)},
		{rewrites: "TERM:INT", want: sig.SetOf(sig.TERM)},
		{rewrites: "TERM:INT", given: []Signal{sig.INT}, want: sig.SetOf(sig.TERM, sig.INT)},
		{rewrites: "TERM:KILL", want: sig.SetOf(sig.TERM)},
		{rewrites: "TERM:CHLD", want: sig.SetOf(sig.TERM)},
		{rewrites: "HUP:TERM QUIT:USR2", want: sig.SetOf(sig.TERM)},
		{rewrites: "TERM:0", want: sig.SetOf(sig.TERM), warns: "--rewrite=TERM:0"},
		{rewrites: "HUP:0", want: sig.SetOf(sig.TERM)},
		{rewrites: "TERM:WINCH", want: sig.SetOf(sig.TERM, sig.WINCH)},
		{rewrites: "TERM:WINCH", terminal: true, want: sig.SetOf(sig.TERM)},
		{given: []Signal{sig.WINCH, sig.QUIT}, want: sig.SetOf(sig.TERM, sig.WINCH, sig.QUIT)},
		{given: []Signal{sig.WINCH, sig.QUIT}, terminal: true, want: sig.SetOf(sig.TERM, sig.QUIT)},
		{given: []Signal{sig.TERM, 35, 64, 35}, want: sig.SetOf(sig.TERM, 35, 64)},
	} {
		p := mustPlan(t, Config{Rewrites: rewrites(t, c.rewrites), StopSignals: c.given}, c.terminal)
		if p.stop.StopSignals != c.want {
			t.Errorf("%v %v (terminal: %v): %v start it, want %v", c.rewrites, c.given, c.terminal, slices.Collect(p.stop.StopSignals.All), slices.Collect(c.want.All))
		}
		if len(p.Warnings) > 1 || c.warns != "" != (len(p.Warnings) == 1) || c.warns != "" && !strings.Contains(p.Warnings[0], c.warns) {
			t.Errorf("%v: warnings %q, want %q", c.rewrites, p.Warnings, c.warns)
		}
	}
}

// TestPortsContradict: a port cannot count and not count.
func TestPortsContradict(t *testing.T) {
	wantError(t, Config{Until: Quiet, CountPorts: []uint16{80, 443}, IgnorePorts: []uint16{9, 443}},
		"--count-port=443 (LAMEDUCK_COUNT_PORT) and --ignore-port=443 (LAMEDUCK_IGNORE_PORT) contradict each other: leave port 443 out of one of them")
	mustPlan(t, Config{Until: Quiet, CountPorts: []uint16{80}, IgnorePorts: []uint16{443}}, false)
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

func TestConfigStopsBad(t *testing.T) {
	for s := sig.Signal(1); s <= sig.Max; s++ {
		cfg := Config{StopSignals: []Signal{sig.QUIT, s}}
		if why := sigcatch.Uncatchable(s); why != "" {
			wantError(t, cfg, "--stop-signal="+s.String(), why)
		} else if err := cfg.Validate(); err != nil {
			t.Errorf("--stop-signal=%v: %v", s, err)
		}
	}
}

// TestUncatchableRewrites: a signal that this build cannot catch cannot be rewritten.
func TestUncatchableRewrites(t *testing.T) {
	for s := sig.Signal(1); s <= sig.Max; s++ {
		r, err := ParseRewrite(s.String() + ":TERM")
		why := sigcatch.Uncatchable(s)
		switch {
		case why == "" && (err != nil || r != Rewrite{From: s, To: sig.TERM}):
			t.Errorf("%v:TERM is %v, %v", s, r, err)
		case why != "" && (err == nil || !strings.Contains(err.Error(), s.String()) || !strings.Contains(err.Error(), why)):
			t.Errorf("%v:TERM: %v; want an error with %q", s, err, why)
		}
	}
}

func TestConfigRewrites(t *testing.T) {
	p := mustPlan(t, Config{Rewrites: rewrites(t, "TERM:USR1 HUP:0")}, false)
	for from, want := range map[Signal]Signal{sig.TERM: sig.USR1, sig.HUP: 0, sig.INT: sig.INT} {
		if to, _ := p.stop.Rewrites.Of(from); to != want {
			t.Errorf("%v becomes %v, want %v", from, to, want)
		}
	}
	wantError(t, Config{Rewrites: rewrites(t, "HUP:0 TERM:USR1 HUP:USR2")}, "--rewrite=HUP:USR2", "HUP is rewritten twice")
	wantError(t, Config{Rewrites: rewrites(t, "HUP:0 HUP:0")}, "HUP is rewritten twice")
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
	wantError(t, Config{ExitCodes: []ExitMap{{From: 143, To: 0}, {From: 1, To: 2}, {From: 143, To: 1}}}, "--exit-code=143:1 (LAMEDUCK_EXIT_CODE)", "143 is mapped twice")
	wantError(t, Config{ExitCodes: []ExitMap{{From: 143, To: 0}, {From: 143, To: 0}}}, "143 is mapped twice")
}

// TestPresetStopSignals: every build can catch the stop signals of every preset.
func TestPresetStopSignals(t *testing.T) {
	for _, p := range Presets() {
		for _, s := range p.StopSignals {
			if why := sigcatch.Uncatchable(s); why != "" {
				t.Errorf("%s: %v cannot start a stop: %s", p.Name, s, why)
			}
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
