package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestHookAnyway: a hook keeps the right flags and variables, and leaves wrong flags and
// variables out.
func TestHookAnyway(t *testing.T) {
	for _, c := range []struct {
		args, env string
		says      string // delay, condition, silence, ceiling and grace period
		wrong     string // the names of the settings left out
	}{
		{"", "", "0s quiet 0s 0s 0s", ""},
		{"--dely=5 --quiet-for=2", "", "0s quiet 2s 0s 0s", "--dely"},
		{"--dely 5 --quiet-for 2", "", "0s quiet 2s 0s 0s", "--dely"},
		{"--delay --quiet-for=2", "", "0s quiet 2s 0s 0s", "--delay"},
		{"--quiet-for=2 --delay", "", "0s quiet 2s 0s 0s", "--delay"},
		{"-d5x -u settled", "", "0s settled 0s 0s 0s", "-d"},
		{"-d 5 nginx -g daemon --until=settled", "", "5s settled 0s 0s 0s", "nginx -g"},
		{"--quiet-for=2 -xd 5", "", "0s quiet 2s 0s 0s", "-xd"},
		{"-é --quiet-for=2", "", "0s quiet 2s 0s 0s", "-é"},
		{"--delay -1 --quiet-for=2", "", "0s quiet 2s 0s 0s", "--delay"},
		{"--quiet-for=2 -d -1s", "", "0s quiet 2s 0s 0s", "-d"},
		{"--delay=5 --delay=x", "", "5s quiet 0s 0s 0s", "--delay"},
		{"--until=Settled --delay=5", "", "5s quiet 0s 0s 0s", "--until"},
		{"--until=elapsed --delay=x", "", "0s quiet 0s 0s 0s", "--delay"},
		{"--until=elapsed --delay=3 --quiet-for=2", "", "3s  0s 0s 0s", "--quiet-for"},
		{"--delay=50 --grace-period=30", "", "0s quiet 0s 0s 30s", "--delay"},
		{"--until=elapsed --delay=1h --grace-period=9", "", "0s quiet 0s 0s 9s", "--delay"},
		{"--delay=20 --max-delay=10 --grace-period=60", "", "20s quiet 0s 0s 1m0s", "--max-delay"},
		{"--delay=40 --grace-period=sixty", "", "40s quiet 0s 0s 0s", "--grace-period"},
		{"--rewrite=TERM:QUIT --preset nginx -g --", "", "0s quiet 0s 0s 0s", "--rewrite --preset -g"},
		{"--dely=5", "LAMEDUCK_DELAY=3 LAMEDUCK_QUIET_FOR=x LAMEDUCK_GRACE_PERIOD=40 LAMEDUCK_REWRITE=x", "3s quiet 0s 0s 40s", "--dely LAMEDUCK_QUIET_FOR"},
		{"--delay=5", "LAMEDUCK_MAX_DELAY=2", "5s quiet 0s 0s 0s", "LAMEDUCK_MAX_DELAY"},
		{"--grace-period=60 --quiet-for=2", "LAMEDUCK_UNTIL=elapsed LAMEDUCK_DELAY=0", "0s  0s 0s 1m0s", ""},
		{"--grace-period=60 --quite-for=2", "LAMEDUCK_UNTIL=elapsed", "0s  0s 0s 1m0s", "--quite-for"},
		{"--on-stop='x", "", "0s quiet 0s 0s 0s", "--on-stop"},
	} {
		cfg, wrong := HookAnyway(strings.Fields(c.args), strings.Fields(c.env))
		says := fmt.Sprint(cfg.Delay, " ", cfg.Until, " ", cfg.QuietFor, " ", cfg.MaxDelay, " ", cfg.GracePeriod)
		var names []string
		for _, err := range wrong {
			names = append(names, err.Error()[strings.LastIndex(err.Error(), " ")+1:])
		}
		if says != c.says || strings.Join(names, " ") != c.wrong {
			t.Errorf("%s %s: %q without %q, want %q without %q", c.env, c.args, says, names, c.says, c.wrong)
		}
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s %s: the configuration is invalid: %v", c.env, c.args, err)
		}
	}
}

// TestHookErrors: the errors of a hook show empty words and negative values, and a hook that
// holds because of a wrong --delay does not say that other settings have no effect.
func TestHookErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{""}, `unexpected argument ""; holding without ""`},
		{[]string{"--delay", "-1"}, `--delay=-1: invalid duration "-1": give seconds (10) or units (1m30s, 500ms), from 0 to 8760h0m0s, not a negative time; holding without --delay`},
	} {
		if _, wrong := HookAnyway(c.args, nil); len(wrong) != 1 || wrong[0].Error() != c.want {
			t.Errorf("%q: %v, want %s", c.args, wrong, c.want)
		}
	}
	cfg, _ := HookAnyway([]string{"--delay=x"}, []string{"LAMEDUCK_UNTIL=elapsed", "LAMEDUCK_QUIET_FOR=2"})
	if cfg.Until != "quiet" || len(cfg.Warnings) > 0 {
		t.Errorf("the hook holds until %s, and warns: %q", cfg.Until, cfg.Warnings)
	}
}

// FuzzHookAnyway: arguments of every kind give a valid configuration that holds, unless
// --until=elapsed turns the hook off.
func FuzzHookAnyway(f *testing.F) {
	f.Add("--dely=5\x00--grace-period=60\x00--", "LAMEDUCK_UNTIL=x")
	f.Add("-=", "")
	f.Add("-d\x00-u\x00\xff\x00--=", "LAMEDUCK_=\x00LAMEDUCK_DELAY=1")
	f.Fuzz(func(t *testing.T, args, env string) {
		words, entries := strings.Split(args, "\x00"), strings.Split(env, "\x00")
		if len(words) > 20 || len(entries) > 20 {
			return
		}
		before := slices.Concat(words, entries)
		cfg, _ := HookAnyway(words, entries)
		if err := cfg.Validate(); err != nil {
			t.Errorf("%q %q: the configuration is invalid: %v", words, entries, err)
		}
		off := strings.Contains(args, "elapsed") || strings.Contains(env, "elapsed")
		if !cfg.Holds() && !off {
			t.Errorf("%q %q: no hold", words, entries)
		}
		if !slices.Equal(before, slices.Concat(words, entries)) {
			t.Errorf("%q: the arguments were changed", words)
		}
	})
}
