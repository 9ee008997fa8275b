package cli

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// modelOf returns kong's flags of a command, by their names.
func modelOf(t testing.TB, command string) map[string]*kong.Flag {
	t.Helper()
	k := newParser(new(Line))
	flags := map[string]*kong.Flag{}
	for _, f := range flagsOf(command, k.Model.Flags) {
		flags[f.Name] = f
	}
	return flags
}

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
	"-u quiet --ignore-probes --no-ignore-probes":  {Until: shim.Quiet, Probes: shim.CountProbes},
	"-u quiet --no-ignore-probes --ignore-probes":  {Until: shim.Quiet, Probes: shim.IgnoreProbes},
	"-u quiet --ignore-probes=no":                  {Until: shim.Quiet, Probes: shim.CountProbes},
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
			got, err := configOf(line, "")
			got.Env = nil
			if err != nil || !reflect.DeepEqual(got, want) {
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
		if got := strings.Join(c.Command, " "); got != want || c.Help || c.HelpAll || c.Version {
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

// TestCut: the command begins behind a flag's value and behind no other word, whether the
// flag is long, short or in a cluster.
func TestCut(t *testing.T) {
	k := newParser(new(Line))
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
		flags, rest, err := cut(strings.Fields(args), k.Model.Flags)
		if got := strings.Join(rest, " "); err != nil || got != command || strings.TrimSpace(strings.Join(flags, " ")+" "+got) != args {
			t.Errorf("%s: flags %q, command %q, %v; want %q", args, flags, rest, err, command)
		}
	}
}

// TestLineErrors: flags without a value, flags that do not exist, and words too many.
func TestLineErrors(t *testing.T) {
	for args, want := range map[string]string{
		"--delay":              "--delay needs a value: give --delay VALUE",
		"--delay -- x":         "--delay needs a value: give --delay VALUE",
		"-gd":                  "-gd needs a value: give -gd VALUE",
		"-d -x x":              "-d needs a value: give -d VALUE",
		"-g --until -d5 x":     "--until needs a value: give --until VALUE",
		"--no-ignore-probes=x": "--no-ignore-probes takes no value: give --no-ignore-probes alone",
		"--dealy=5 x":          "unknown flag --dealy: did you mean --delay?",
		"--Delay x":            "unknown flag --Delay: did you mean --delay?",
		"--MAX_DELAY=5 x":      "unknown flag --MAX_DELAY: did you mean --max-delay?",
		"--nginx x":            "unknown flag --nginx: flags of the command follow the command",
		"--no-such x y":        "unknown flag --no-such: flags of the command follow the command",
		"-gx1 x":               "unknown flag -x: flags of the command follow the command",
		"-\xe9 x":              `unknown flag "-\xe9": flags of the command follow the command`,
	} {
		_, err := ParseRun(strings.Fields(args), nil)
		oneLine(t, args, err, want+" (lameduck --help-all lists the flags)")
	}
	for args, want := range map[string]string{
		"-p nginx":          "unknown flag -p: lameduck itself has the flag, lameduck hold does not (",
		"--stop-schedule=5": "unknown flag --stop-schedule: lameduck itself has the flag, lameduck hold does not (",
		"--json":            "unknown flag --json (",
		"x":                 `unexpected argument "x" (lameduck hold --help lists the flags; to run a program of that name: lameduck -- hold)`,
		"-- x":              `unexpected argument "x" (`,
	} {
		_, err := ParseHold(strings.Fields(args), nil)
		oneLine(t, args, err, want)
	}
	for flag, want := range map[string]string{"--quiet-for=3": "unknown flag --quiet-for", "--quite-for=3": "unknown flag --quite-for", "-d": "unknown flag -d"} {
		var init struct {
			Group bool `short:"g"`
		}
		if _, err := ParseOther(&init, []string{flag, "x"}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", flag, err, want)
		}
	}
}

// TestOnlyHolds: a preStop hook whose author forgot the word hold.
func TestOnlyHolds(t *testing.T) {
	for args, want := range map[string]bool{
		"--until=quiet --grace-period=60": true, "-d x": true, "--log-format=json": true,
		"": false, "-d 5 -g": false, "--preset=nginx": false,
	} {
		line, err := ParseRun(strings.Fields(args), []string{"LAMEDUCK_UNTIL=quiet"})
		if err != nil || line.OnlyHolds() != want {
			t.Errorf("%s: %v, %v", args, line.OnlyHolds(), err)
		}
	}
}

// TestModelIsLate: without a flag and a variable of lameduck kong makes no model, which takes
// thousands of allocations, a large part of lameduck's start.
func TestModelIsLate(t *testing.T) {
	args, env := []string{"--", "true", "-d"}, []string{"A=1", "PATH=x"}
	got := testing.AllocsPerRun(10, func() {
		if _, err := ParseRun(args, env); err != nil {
			t.Fatal(err)
		}
	})
	if got > 10 {
		t.Errorf("%v allocations", got)
	}
}
