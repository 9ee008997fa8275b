package cli

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim"
)

// configOf returns the configuration of a command line and an environment, both split at
// blanks.
func configOf(args, env string) (shim.Config, error) {
	line, err := ParseRun(strings.Fields(args), strings.Fields(env))
	if err != nil {
		return shim.Config{}, err
	}
	return line.Config()
}

// flagForms are command lines with flags in all forms, and the configurations.
var flagForms = map[string]shim.Config{
	"": {},

	"-d2":                 delayed(2 * time.Second),
	"-d 2":                delayed(2 * time.Second),
	"--delay=2":           delayed(2 * time.Second),
	"--delay 2":           delayed(2 * time.Second),
	"-d2s":                delayed(2 * time.Second),
	"-d 1m30s":            delayed(90 * time.Second),
	"-d 0.5":              delayed(500 * time.Millisecond),
	"-d .5":               delayed(500 * time.Millisecond),
	"-d 1.5h":             delayed(90 * time.Minute),
	"-d 250ms":            delayed(250 * time.Millisecond),
	"-d 0":                delayed(0),
	"-d 0s":               delayed(0),
	"-d 2 -d 3":           delayed(3 * time.Second),
	"--delay=2 -d3 -d 0s": delayed(0),

	"-d 5 --grace-period=60":                   {Delay: 5 * time.Second, GracePeriod: time.Minute},
	"-d 5 --grace-period 1m":                   {Delay: 5 * time.Second, GracePeriod: time.Minute},
	"--grace-period=1 -d 5":                    {Delay: 5 * time.Second, GracePeriod: time.Second},
	"-d 5 --grace-period=9 --grace-period=1.5": {Delay: 5 * time.Second, GracePeriod: 1500 * time.Millisecond},

	"-r TERM:USR1":                    rewriting(pair(15, 10)),
	"-rTERM:USR1":                     rewriting(pair(15, 10)),
	"--rewrite=TERM:USR1":             rewriting(pair(15, 10)),
	"--rewrite SIGTERM:SIGUSR1":       rewriting(pair(15, 10)),
	"-r sigterm:usr1":                 rewriting(pair(15, 10)),
	"-r 15:10":                        rewriting(pair(15, 10)),
	"-r HUP:0":                        rewriting(pair(1, 0)),
	"-r RTMIN+1:RTMAX-1":              rewriting(pair(35, 63)),
	"-r TERM:USR1,HUP:0,INT:15":       rewriting(pair(15, 10), pair(1, 0), pair(2, 15)),
	"-r TERM:USR1 --rewrite=HUP:0":    rewriting(pair(15, 10), pair(1, 0)),
	"-r TERM:USR1,HUP:0 -r INT:TERM":  rewriting(pair(15, 10), pair(1, 0), pair(2, 15)),
	"--stop-signal=QUIT":              stoppingOn(3),
	"--stop-signal sigquit,28,rtmax":  stoppingOn(3, 28, 64),
	"--stop-signal=1 --stop-signal=2": stoppingOn(1, 2),

	"-g":                          {Group: true},
	"--group":                     {Group: true},
	"--group=true":                {Group: true},
	"--group=false":               {},
	"-s":                          {Subreaper: shim.Yes},
	"--subreaper":                 {Subreaper: shim.Yes},
	"--subreaper=false":           {Subreaper: shim.No},
	"-gs":                         {Group: true, Subreaper: shim.Yes},
	"-gd2":                        {Group: true, Delay: 2 * time.Second},
	"--linger=5":                  {Linger: 5 * time.Second},
	"-u quiet":                    {Until: shim.Quiet},
	"--until=settled":             {Until: shim.Settled},
	"--until drained -d 0":        {Until: shim.Drained, DelayGiven: true},
	"--until=elapsed":             {},
	"-u quiet --quiet-for=500ms":  {Until: shim.Quiet, QuietFor: 500 * time.Millisecond},
	"-u quiet --max-silence=1m":   {Until: shim.Quiet, MaxSilence: time.Minute},
	"-u quiet --max-delay 15":     {Until: shim.Quiet, MaxDelay: 15 * time.Second},
	"-d 2 --max-delay 4":          {Delay: 2 * time.Second, MaxDelay: 4 * time.Second},
	"-d 2 --count-port=80":        {Delay: 2 * time.Second, CountPorts: []uint16{80}},
	"-d 2 --ignore-port=80":       {Delay: 2 * time.Second, IgnorePorts: []uint16{80}},
	"-d 2 --ignore-peer=::1":      {Delay: 2 * time.Second, IgnorePeers: []netip.Prefix{netip.MustParsePrefix("::1/128")}},
	"-u quiet --ignore-probes":    {Until: shim.Quiet, Probes: shim.IgnoreProbes},
	"-u quiet --no-ignore-probes": {Until: shim.Quiet, Probes: shim.CountProbes},
	"-u quiet --ignore-probes=no": {Until: shim.Quiet, Probes: shim.CountProbes},
	"-u quiet --count-port=80,443 --ignore-port 9": {Until: shim.Quiet, CountPorts: []uint16{80, 443}, IgnorePorts: []uint16{9}},
	"-u quiet --ignore-peer=10.1.2.3,fd00::/8,::ffff:1.2.3.4": {Until: shim.Quiet, IgnorePeers: []netip.Prefix{
		netip.MustParsePrefix("10.1.2.3/32"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("1.2.3.4/32")}},
	"--linger 1m":                {Linger: time.Minute},
	"--parent-death-signal=term": {ParentDeathSignal: 15},
	"--parent-death-signal 9":    {ParentDeathSignal: 9},

	"-e 143":                   mappingExits(shim.ExitMap{From: 143}),
	"-e143":                    mappingExits(shim.ExitMap{From: 143}),
	"-e 143:1":                 mappingExits(shim.ExitMap{From: 143, To: 1}),
	"--exit-code=0:255":        mappingExits(shim.ExitMap{From: 0, To: 255}),
	"--exit-code 143,130:2":    mappingExits(shim.ExitMap{From: 143}, shim.ExitMap{From: 130, To: 2}),
	"-e 143 -e 130:2 -e 255:0": mappingExits(shim.ExitMap{From: 143}, shim.ExitMap{From: 130, To: 2}, shim.ExitMap{From: 255}),
}

func delayed(d time.Duration) shim.Config           { return shim.Config{Delay: d} }
func rewriting(list ...shim.Rewrite) shim.Config    { return shim.Config{Rewrites: list} }
func stoppingOn(list ...shim.Signal) shim.Config    { return shim.Config{StopSignals: list} }
func mappingExits(list ...shim.ExitMap) shim.Config { return shim.Config{ExitCodes: list} }
func pair(from, to shim.Signal) shim.Rewrite        { return shim.Rewrite{From: from, To: to} }

// TestFlags: every flag in every form.
func TestFlags(t *testing.T) {
	for args, want := range flagForms {
		want.Command, want.Level = []string{"x"}, shim.Warn
		for _, line := range []string{args + " x", args + " -- x"} {
			if got, err := configOf(line, ""); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s:\n got %+v, %v\nwant %+v", line, got, err, want)
			}
		}
	}
	line, _ := ParseRun([]string{"-r", "TERM:USR1, HUP:0", "x"}, nil)
	if got, err := line.Config(); err != nil || len(got.Rewrites) != 2 {
		t.Errorf("with a blank after the comma: %v, %v", got.Rewrites, err)
	}
	for name, want := range map[string]shim.Level{"error": shim.Error, "warn": shim.Warn, "info": shim.Info, "debug": shim.Debug} {
		if got, err := configOf("--log-level="+name+" x", ""); err != nil || got.Level != want {
			t.Errorf("--log-level=%s is %v, %v", name, got.Level, err)
		}
	}
}

// TestCommand: the command begins where the flags end.
func TestCommand(t *testing.T) {
	for args, want := range map[string]string{
		"x":                         "x",
		"x y z":                     "x y z",
		"-- x":                      "x",
		"-- x -- y":                 "x -- y",
		"-d 1 x":                    "x",
		"-d 1 -- x":                 "x",
		"-d 1 -- -x":                "-x",
		"-d1 -- --help":             "--help",
		"-- hold":                   "hold",
		"-d 1 hold":                 "hold",
		"-- -- x":                   "-- x",
		"-- -- -- x":                "-- -- x",
		"x --":                      "x --",
		"x -- -x":                   "x -- -x",
		"x -d 9 --delay=9 -r":       "x -d 9 --delay=9 -r",
		"x --version -h --help-all": "x --version -h --help-all",
		"x --no-such-flag":          "x --no-such-flag",
		"-d 1 x -d 9":               "x -d 9",
		"-d 1 -- x -d 9 -- -e":      "x -d 9 -- -e",
		"-":                         "-",
		"":                          "",
		"--":                        "",
		"-d 1 --":                   "",
	} {
		c, err := ParseRun(strings.Fields(args), nil)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if got := strings.Join(c.Command, " "); got != want || c.Help.Value || c.HelpAll.Value || c.Version.Value {
			t.Errorf("%s: %q runs, want %q", args, got, want)
		}
	}
	c, err := ParseRun([]string{"-d", "1", "", "", "a b"}, nil)
	if err != nil || !slices.Equal(c.Command, []string{"", "", "a b"}) {
		t.Errorf("empty words and blanks became %q, %v", c.Command, err)
	}
}

// TestNotUTF8: bytes that are not UTF-8 pass unaltered in the command, in the value of a
// flag and in the environment.
func TestNotUTF8(t *testing.T) {
	const path = "/caf\xe9"
	line, err := ParseRun([]string{"--alive-file=" + path, "--on-stop", path, path, path}, []string{"LAMEDUCK_WAIT_GONE=" + path, "A=" + path})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := line.Config()
	if err != nil || cfg.AliveFile != path || cfg.OnStop[0] != path || cfg.WaitGone[0] != path ||
		!slices.Equal(cfg.Command, []string{path, path}) || !slices.Equal(cfg.Env, []string{"A=" + path}) {
		t.Errorf("%q %q %q %q %q, %v", cfg.AliveFile, cfg.OnStop, cfg.WaitGone, cfg.Command, cfg.Env, err)
	}
}

// TestSplit: the command begins behind a flag's value and behind no other word,
// whether the flag is long, short, in a cluster or unknown.
func TestSplit(t *testing.T) {
	known := flagsOf(new(Run))
	for args, command := range map[string]string{
		"-d 1 -g x":       "x",
		"-gd 1 x -d":      "x -d",
		"-gd1 x":          "x",
		"-dg x":           "x", // g is the value
		"--group x":       "x",
		"--group=false x": "x",
		"--delay x -- y":  "-- y",
		"--subreaper x":   "x",
		"-d - x":          "x",
		"- -g":            "- -g",
		"-g -- -g":        "-- -g",
	} {
		flags, rest, err := split(strings.Fields(args), known)
		if got := strings.Join(rest, " "); err != nil || got != command || strings.TrimSpace(strings.Join(flags, " ")+" "+got) != args {
			t.Errorf("%s: flags %q, command %q, %v; want %q", args, flags, rest, err, command)
		}
	}
	for args, want := range map[string]string{
		"--delay":      "--delay needs a value: give --delay=VALUE",
		"--delay -- x": "--delay needs a value: give --delay=VALUE",
		"-gd":          "-d needs a value: give -d VALUE",
		"-d -x x":      "-d needs a value: give -d VALUE",
		"-d -5 x":      `--delay=-5: invalid duration "-5": give seconds (10) or units (1m30s, 500ms), from 0 to 8760h0m0s, not a negative time`,
		"--delay -1 x": `--delay=-1: invalid duration "-1": give seconds (10) or units (1m30s, 500ms), from 0 to 8760h0m0s, not a negative time`,
		"-e -1 x":      `--exit-code=-1: invalid exit code "-1": give FROM or FROM:TO, each from 0 to 255, as in 143 or 143:0`,

		"--stop-schedule -15/30/-9 x": "--stop-schedule needs a value: give --stop-schedule=-15/30/-9",

		"-delay=10 x":      "unknown flag -delay=10: did you mean --delay=10?",
		"-delay 10 x":      "unknown flag -delay: did you mean --delay?",
		"-until quiet x":   "unknown flag -until: did you mean --until?",
		"-preset=auto x":   "unknown flag -preset=auto: did you mean --preset=auto?",
		"-health=:9000 x":  "unknown flag -health=:9000: did you mean --health=:9000?",
		"-g -explain x":    "unknown flag -explain: did you mean --explain?",
		"-d=10 x":          "-d takes no =: give --delay=10",
		"-gs=false x":      "-s takes no =: give --subreaper=false",
		"--until: quiet x": "unknown flag --until:: did you mean --until?",
		"--MAX_DELAY=5 x":  "unknown flag --MAX_DELAY: did you mean --max-delay?",
		"--probes x":       "unknown flag --probes: did you mean --ignore-probes?",

		"--quiet x":     "unknown flag --quiet: did you mean --until=quiet?",
		"--quiet=2 x":   "unknown flag --quiet: did you mean --quiet-for?",
		"--drained x":   "unknown flag --drained: did you mean --until=drained?",
		"--timeout=9 x": "unknown flag --timeout: did you mean --grace-period?",
		"--verbose x":   "unknown flag --verbose: did you mean --log-level=info?",
		"-v x":          "unknown flag -v: did you mean --log-level=info?",
		"-gV x":         "unknown flag -V: did you mean --version?",
		"--hold x":      "unknown flag --hold: did you mean lameduck hold?",
		"--no-group x":  "unknown flag --no-group: did you mean --group=false?",

		"--terminationGracePeriodSeconds=60 x": "unknown flag --terminationGracePeriodSeconds: did you mean --grace-period?",
		"--termination-grace-period=60 x":      "unknown flag --termination-grace-period: did you mean --grace-period?",
		"-g --until -d5 x":                     "--until needs a value: give --until=VALUE",
		"--no-such x y":                        "unknown flag --no-such",
		"--dealy=5 x":                          "unknown flag --dealy: did you mean --delay?",
		"--Delay x":                            "unknown flag --Delay: did you mean --delay?",
		"--grace=5 x":                          "unknown flag --grace: did you mean --grace-period?",
		"-gx1 x":                               "unknown flag -x",
		"-\xe9 x":                              `unknown flag "-\xe9"`,
	} {
		if _, _, err := split(strings.Fields(args), known); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// TestSplitOneWord: a flag and its value in one word, as lists in YAML often have them.
func TestSplitOneWord(t *testing.T) {
	const want = `unknown flag "--delay 10": did you mean --delay=10?`
	if _, _, err := split([]string{"--delay 10", "x"}, flagsOf(new(Run))); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestSubcommandLacks: a flag that only lameduck itself has is named as such, and what was
// meant is a flag of the subcommand.
func TestSubcommandLacks(t *testing.T) {
	_, err := ParseHold([]string{"-p", "nginx"}, nil)
	oneLine(t, "hold -p", err, "unknown flag -p: lameduck itself has the flag, lameduck hold does not (")
	_, err = ParseHold([]string{"--stop-schedule=5"}, nil)
	oneLine(t, "hold --stop-schedule", err, "unknown flag --stop-schedule: lameduck itself has the flag, lameduck hold does not (")
	_, wrong := HookAnyway([]string{"--preset", "nginx"}, nil)
	oneLine(t, "hook --preset", wrong[0], "unknown flag --preset: lameduck itself has the flag, lameduck hold does not; holding without --preset")
	_, err = ParseWatch([]string{"--verbose"}, nil)
	oneLine(t, "watch --verbose", err, "unknown flag --verbose (")
}

// TestFlagOfCommand: an unknown flag that resembles no other is probably a flag of the command.
func TestFlagOfCommand(t *testing.T) {
	_, err := ParseRun([]string{"-f", "haproxy.cfg"}, nil)
	oneLine(t, "-f", err, "unknown flag -f: flags of the command follow the command (")
	_, err = ParseRun([]string{"--dealy=5", "x"}, nil)
	oneLine(t, "--dealy", err, "unknown flag --dealy: did you mean --delay? (")
}

// TestFlagOfLameduck: under the name of another init, lameduck's own flags are variables.
func TestFlagOfLameduck(t *testing.T) {
	for flag, want := range map[string]string{
		"--quiet-for=3": "unknown flag --quiet-for: give LAMEDUCK_QUIET_FOR",
		"--quite-for=3": "unknown flag --quite-for",
		"-d":            "unknown flag -d",
	} {
		var init struct {
			Group bool `short:"g"`
		}
		if _, err := ParseOther(&init, []string{flag, "x"}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", flag, err, want)
		}
	}
}

// TestNegatable: a flag with the tag negatable has a form with --no-.
func TestNegatable(t *testing.T) {
	for args, want := range map[string]string{"": "false []", "--pets": "true [{true <nil>}]", "--no-pets": "false [{false <nil>}]", "--pets=no": "false [{no <nil>}]", "--pets --no-pets": "false [{false <nil>}]", "--no-pets --pets": "true [{true <nil>}]"} {
		var grammar struct {
			Line `kong:"-"`
			Section
		}
		_, err := grammar.parse(&grammar, strings.Fields(args), nil, nil)
		if got := fmt.Sprint(grammar.Pets.Value, " ", grammar.Pets.texts); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", args, got, err, want)
		}
	}
}

// Section is a section of a grammar for TestNegatable.
type Section struct {
	Pets Bool `name:"pets" negatable:""`
}

// TestParseIsCheap: kong gets only the flags that were given. The model of all flags takes
// thousands of allocations, a large part of lameduck's start-up.
func TestParseIsCheap(t *testing.T) {
	for _, c := range []struct {
		args, env string
		atMost    float64
	}{
		{"true", "A=1 PATH=x", 60},
		{"-d 5 true", "A=1", 350},
		{"true", "LAMEDUCK_UNTIL=quiet LAMEDUCK_PRESET=auto", 450},
	} {
		args, env := strings.Fields(c.args), strings.Fields(c.env)
		got := testing.AllocsPerRun(10, func() {
			if _, err := ParseRun(args, env); err != nil {
				t.Fatal(err)
			}
		})
		if got > c.atMost {
			t.Errorf("%s %s: %v allocations, want at most %v", c.env, c.args, got, c.atMost)
		}
	}
}
