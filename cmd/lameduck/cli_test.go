package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// asMain marks the test binary that is to be lameduck.
const asMain = "CLI_TEST_MAIN"

// raceInHaste spares each process a second at its exit under the race detector.
const raceInHaste = "GORACE=atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// read is the way from words to the configuration.
func readBoth(args, env string) (shim.Config, error) {
	c, t, err := parse(strings.Fields(args), strings.Fields(env))
	if err != nil {
		return shim.Config{}, err
	}
	return c.config(t)
}

// TestFlags: every flag, in every form that it may have.
func TestFlags(t *testing.T) {
	delay := func(d time.Duration) shim.Config { return shim.Config{Delay: d} }
	rewrites := func(list ...shim.Rewrite) shim.Config { return shim.Config{Rewrites: list} }
	stops := func(list ...shim.Signal) shim.Config { return shim.Config{StopSignals: list} }
	exits := func(list ...shim.ExitMap) shim.Config { return shim.Config{ExitCodes: list} }
	rewrite := func(from, to shim.Signal) shim.Rewrite { return shim.Rewrite{From: from, To: to} }
	for args, want := range map[string]shim.Config{
		"": {},

		"-d2":                 delay(2 * time.Second),
		"-d 2":                delay(2 * time.Second),
		"--delay=2":           delay(2 * time.Second),
		"--delay 2":           delay(2 * time.Second),
		"-d2s":                delay(2 * time.Second),
		"-d 1m30s":            delay(90 * time.Second),
		"-d 0.5":              delay(500 * time.Millisecond),
		"-d .5":               delay(500 * time.Millisecond),
		"-d 1.5h":             delay(90 * time.Minute),
		"-d 250ms":            delay(250 * time.Millisecond),
		"-d 0":                delay(0),
		"-d 0s":               delay(0),
		"-d 2 -d 3":           delay(3 * time.Second),
		"--delay=2 -d3 -d 0s": delay(0),

		"-d 5 --grace-period=60":                   {Delay: 5 * time.Second, GracePeriod: time.Minute},
		"-d 5 --grace-period 1m":                   {Delay: 5 * time.Second, GracePeriod: time.Minute},
		"--grace-period=1 -d 5":                    {Delay: 5 * time.Second, GracePeriod: time.Second},
		"-d 5 --grace-period=9 --grace-period=1.5": {Delay: 5 * time.Second, GracePeriod: 1500 * time.Millisecond},

		"-r TERM:USR1":                    rewrites(rewrite(15, 10)),
		"-rTERM:USR1":                     rewrites(rewrite(15, 10)),
		"--rewrite=TERM:USR1":             rewrites(rewrite(15, 10)),
		"--rewrite SIGTERM:SIGUSR1":       rewrites(rewrite(15, 10)),
		"-r sigterm:usr1":                 rewrites(rewrite(15, 10)),
		"-r 15:10":                        rewrites(rewrite(15, 10)),
		"-r HUP:0":                        rewrites(rewrite(1, 0)),
		"-r RTMIN+1:RTMAX-1":              rewrites(rewrite(35, 63)),
		"-r TERM:USR1,HUP:0,INT:15":       rewrites(rewrite(15, 10), rewrite(1, 0), rewrite(2, 15)),
		"-r TERM:USR1 --rewrite=HUP:0":    rewrites(rewrite(15, 10), rewrite(1, 0)),
		"-r TERM:USR1,HUP:0 -r INT:TERM":  rewrites(rewrite(15, 10), rewrite(1, 0), rewrite(2, 15)),
		"--stop-signal=QUIT":              stops(3),
		"--stop-signal sigquit,28,rtmax":  stops(3, 28, 64),
		"--stop-signal=1 --stop-signal=2": stops(1, 2),

		"-g":                         {Group: true},
		"--group":                    {Group: true},
		"--group=true":               {Group: true},
		"--group=false":              {},
		"--drop-unhandled":           {DropUnhandled: true},
		"-s":                         {Subreaper: shim.Yes},
		"--subreaper":                {Subreaper: shim.Yes},
		"--subreaper=false":          {Subreaper: shim.No},
		"-gs":                        {Group: true, Subreaper: shim.Yes},
		"-gd2":                       {Group: true, Delay: 2 * time.Second},
		"--linger=5":                 {Linger: 5 * time.Second},
		"-u quiet":                   {Until: shim.Quiet},
		"--until=settled":            {Until: shim.Settled},
		"--until drained -d 0":       {Until: shim.Drained, DelayGiven: true},
		"--until=elapsed":            {},
		"-u quiet --quiet-for=500ms": {Until: shim.Quiet, QuietFor: 500 * time.Millisecond},
		"-u quiet --max-silence=1m":  {Until: shim.Quiet, MaxSilence: time.Minute},
		"-u quiet --max-delay 15":    {Until: shim.Quiet, MaxDelay: 15 * time.Second},
		"-d 2 --max-delay 4":         {Delay: 2 * time.Second, MaxDelay: 4 * time.Second},
		"-d 2 --count-port=80":       {Delay: 2 * time.Second, CountPorts: []uint16{80}},
		"-d 2 --ignore-port=80":      {Delay: 2 * time.Second, IgnorePorts: []uint16{80}},
		"-d 2 --ignore-peer=::1":     {Delay: 2 * time.Second, IgnorePeers: []netip.Prefix{netip.MustParsePrefix("::1/128")}},
		"-u quiet --ignore-probes":   {Until: shim.Quiet, IgnoreProbes: true},
		"-u quiet --count-port=80,443 --ignore-port 9": {Until: shim.Quiet, CountPorts: []uint16{80, 443}, IgnorePorts: []uint16{9}},
		"-u quiet --ignore-peer=10.1.2.3,fd00::/8,::ffff:1.2.3.4": {Until: shim.Quiet, IgnorePeers: []netip.Prefix{
			netip.MustParsePrefix("10.1.2.3/32"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("1.2.3.4/32")}},
		"--linger 1m":                {Linger: time.Minute},
		"--parent-death-signal=term": {ParentDeathSignal: 15},
		"--parent-death-signal 9":    {ParentDeathSignal: 9},

		"-e 143":                   exits(shim.ExitMap{From: 143}),
		"-e143":                    exits(shim.ExitMap{From: 143}),
		"-e 143:1":                 exits(shim.ExitMap{From: 143, To: 1}),
		"--exit-code=0:255":        exits(shim.ExitMap{From: 0, To: 255}),
		"--exit-code 143,130:2":    exits(shim.ExitMap{From: 143}, shim.ExitMap{From: 130, To: 2}),
		"-e 143 -e 130:2 -e 255:0": exits(shim.ExitMap{From: 143}, shim.ExitMap{From: 130, To: 2}, shim.ExitMap{From: 255}),
	} {
		want.Command, want.Level = []string{"x"}, shim.Warn
		for _, line := range []string{args + " x", args + " -- x"} {
			if got, err := readBoth(line, ""); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s:\n got %+v, %v\nwant %+v", line, got, err, want)
			}
		}
	}
	c, twins, _ := parse([]string{"-r", "TERM:USR1, HUP:0", "x"}, nil)
	if got, err := c.config(twins); err != nil || len(got.Rewrites) != 2 {
		t.Errorf("with a blank after the comma: %v, %v", got.Rewrites, err)
	}
	for name, want := range map[string]shim.Level{"error": shim.Error, "warn": shim.Warn, "info": shim.Info, "debug": shim.Debug} {
		if got, err := readBoth("--log-level="+name+" x", ""); err != nil || got.Level != want {
			t.Errorf("--log-level=%s is %v, %v", name, got.Level, err)
		}
	}
}

// TestCommand: where the flags end, and the command's own words begin.
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
		c, _, err := parse(strings.Fields(args), nil)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if got := strings.Join(c.Command, " "); got != want || c.Help || c.HelpAll || c.Version {
			t.Errorf("%s: %+v, want %q to run", args, *c, want)
		}
	}
	c, _, err := parse([]string{"-d", "1", "", "", "a b"}, nil)
	if err != nil || !slices.Equal(c.Command, []string{"", "", "a b"}) {
		t.Errorf("empty words and blanks became %q, %v", c.Command, err)
	}
}

// TestNotUTF8: bytes that are not UTF-8 pass unchanged, in the command, in the value
// of a flag and in the environment.
func TestNotUTF8(t *testing.T) {
	const path = "/caf\xe9"
	c, v, err := parse([]string{"--alive-file=" + path, "--on-stop", path, path, path}, []string{"LAMEDUCK_WAIT_GONE=" + path, "A=" + path})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := c.config(v)
	if err != nil || cfg.AliveFile != path || cfg.OnStop[0] != path || cfg.WaitGone[0] != path ||
		!slices.Equal(cfg.Command, []string{path, path}) || !slices.Equal(cfg.Env, []string{"A=" + path}) {
		t.Errorf("%q %q %q %q %q, %v", cfg.AliveFile, cfg.OnStop, cfg.WaitGone, cfg.Command, cfg.Env, err)
	}
}

// TestSplitCommand: the command begins behind a flag's value and behind no other word,
// whether the flag is long, short, in a cluster or unknown.
func TestSplitCommand(t *testing.T) {
	k, err := newParser(new(cli))
	if err != nil {
		t.Fatal(err)
	}
	for args, command := range map[string]string{
		"-d 1 -g x":         "x",
		"-gd 1 x -d":        "x -d",
		"-gd1 x":            "x",
		"-dg x":             "x", // g is the value
		"--group x":         "x",
		"--group=false x":   "x",
		"--delay x -- y":    "-- y",
		"--subreaper x":     "x",
		"-d - x":            "x",
		"--no-such x y":     "x y",
		"-g --no-such=1 -x": "",
		"- -g":              "- -g",
		"-g -- -g":          "-- -g",
	} {
		flags, rest, err := splitCommand(strings.Fields(args), k.Model.Flags)
		if got := strings.Join(rest, " "); err != nil || got != command || strings.TrimSpace(strings.Join(flags, " ")+" "+got) != args {
			t.Errorf("%s: flags %q, command %q, %v; want %q", args, flags, rest, err, command)
		}
	}
	for args, want := range map[string]string{
		"--delay":          "--delay has no value: give --delay=VALUE",
		"--delay -- x":     "--delay has no value: give --delay=VALUE",
		"-gd":              "-d has no value: give -d VALUE",
		"-d -5 x":          "-d has no value: give -d VALUE",
		"-g --until -d5 x": "--until has no value: give --until=VALUE",
	} {
		if _, _, err := splitCommand(strings.Fields(args), k.Model.Flags); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// TestTwins: the environment counts where the command line is silent, and the
// command does not see it.
func TestTwins(t *testing.T) {
	for _, c := range []struct {
		args, env string
		want      shim.Config
		rest      string
	}{
		{"", "A=1 B=", shim.Config{}, "A=1 B="},
		{"", "LAMEDUCK_DELAY=2 A=1", shim.Config{Delay: 2 * time.Second}, "A=1"},
		{"-d 3", "LAMEDUCK_DELAY=2", shim.Config{Delay: 3 * time.Second}, ""},
		{"-d 0", "LAMEDUCK_DELAY=2", shim.Config{}, ""},
		{"-d 3", "LAMEDUCK_DELAY=nonsense", shim.Config{Delay: 3 * time.Second}, ""},
		{"", "A=1 LAMEDUCK_DELAY= B=2", shim.Config{}, "A=1 B=2"},
		{"", "A=1 A=2 B A=1 LAMEDUCK_DELAY LAMEDUCK_B", shim.Config{}, "A=1 A=2 B A=1 LAMEDUCK_DELAY LAMEDUCK_B"},
		{"", "LAMEDUCK_DELAY=2 LAMEDUCK_DELAY=3", shim.Config{Delay: 2 * time.Second}, ""},
		{"", "LAMEDUCK_DELAY=1m30s LAMEDUCK_GRACE_PERIOD=120", shim.Config{Delay: 90 * time.Second, GracePeriod: 2 * time.Minute}, ""},
		{"", "LAMEDUCK_REWRITE=TERM:USR1,HUP:0", shim.Config{Rewrites: []shim.Rewrite{{From: 15, To: 10}, {From: 1}}}, ""},
		{"-r INT:0", "LAMEDUCK_REWRITE=TERM:USR1", shim.Config{Rewrites: []shim.Rewrite{{From: 2}}}, ""},
		{"", "LAMEDUCK_STOP_SIGNAL=quit,28", shim.Config{StopSignals: []shim.Signal{3, 28}}, ""},
		{"", "LAMEDUCK_EXIT_CODE=143,130:2", shim.Config{ExitCodes: []shim.ExitMap{{From: 143}, {From: 130, To: 2}}}, ""},
		{"", "LAMEDUCK_LOG_LEVEL=warn", shim.Config{}, ""},
		{"", "LAMEDUCK_GROUP=true LAMEDUCK_DROP_UNHANDLED=1", shim.Config{Group: true, DropUnhandled: true}, ""},
		{"", "LAMEDUCK_GROUP= LAMEDUCK_SUBREAPER=", shim.Config{}, ""},
		{"", "LAMEDUCK_GROUP=0 LAMEDUCK_SUBREAPER=false", shim.Config{Subreaper: shim.No}, ""},
		{"--group=false -s", "LAMEDUCK_GROUP=1 LAMEDUCK_SUBREAPER=0", shim.Config{Subreaper: shim.Yes}, ""},
		{"", "LAMEDUCK_LINGER=5 LAMEDUCK_PARENT_DEATH_SIGNAL=sigterm", shim.Config{Linger: 5 * time.Second, ParentDeathSignal: 15}, ""},
		{"", "lameduck_delay=2 XLAMEDUCK_DELAY=2 LAMEDUCK=2", shim.Config{}, "lameduck_delay=2 XLAMEDUCK_DELAY=2 LAMEDUCK=2"},
		{"", "LAMEDUCK_PORT=tcp://10.0.0.1:80 LAMEDUCK_PORT_8080_TCP=x LAMEDUCK_PORT_8080_TCP_ADDR=x LAMEDUCK_SERVICE_HOST=x LAMEDUCK_SERVICE_PORT=80",
			shim.Config{}, "LAMEDUCK_PORT=tcp://10.0.0.1:80 LAMEDUCK_PORT_8080_TCP=x LAMEDUCK_PORT_8080_TCP_ADDR=x LAMEDUCK_SERVICE_HOST=x LAMEDUCK_SERVICE_PORT=80"},
	} {
		c.want.Command, c.want.Level = []string{"x"}, shim.Warn
		got, err := readBoth(c.args+" -- x", c.env)
		if rest := strings.Join(got.Env, " "); rest != c.rest {
			t.Errorf("%s: the command gets %q, want %q", c.env, rest, c.rest)
		}
		if got.Env = nil; err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %s:\n got %+v, %v\nwant %+v", c.env, c.args, got, err, c.want)
		}
	}
	if got, err := readBoth("x", "LAMEDUCK_LOG_LEVEL=debug"); err != nil || got.Level != shim.Debug {
		t.Errorf("LAMEDUCK_LOG_LEVEL=debug is %v, %v", got.Level, err)
	}
}

// TestTwinsWarn: what is ours by its name but means nothing is said, with what
// was probably meant, and stays; and what has no effect is said.
func TestTwinsWarn(t *testing.T) {
	for env, says := range map[string][]string{
		"LAMEDUCK_DELAI=2":           {"LAMEDUCK_DELAI", "did you mean LAMEDUCK_DELAY?"},
		"LAMEDUCK_GRACEPERIOD=2":     {"LAMEDUCK_GRACEPERIOD", "did you mean LAMEDUCK_GRACE_PERIOD?"},
		"LAMEDUCK_REWRITES=":         {"LAMEDUCK_REWRITES", "did you mean LAMEDUCK_REWRITE?"},
		"LAMEDUCK_PORTS=2":           {"LAMEDUCK_PORTS"},
		"LAMEDUCK_SERVICE=2":         {"LAMEDUCK_SERVICE"},
		"LAMEDUCK_VERSION=1":         {"LAMEDUCK_VERSION"},
		"LAMEDUCK_HELP=1":            {"LAMEDUCK_HELP"},
		"LAMEDUCK_=1":                {"LAMEDUCK_ "},
		"LAMEDUCK_GRACE_PERIOD=60":   {"LAMEDUCK_GRACE_PERIOD", "no effect", "--delay"},
		"LAMEDUCK_COMMAND=rm":        {"LAMEDUCK_COMMAND"},
		"LAMEDUCK_LOG__LEVEL=silent": {"LAMEDUCK_LOG__LEVEL", "did you mean LAMEDUCK_LOG_LEVEL?"},
	} {
		cfg, err := readBoth("x", env)
		if err != nil || len(cfg.Warnings) != 1 {
			t.Errorf("%s: warnings %q, error %v", env, cfg.Warnings, err)
			continue
		}
		for _, part := range says {
			if !strings.Contains(cfg.Warnings[0], part) {
				t.Errorf("%s: %q; want %q in it", env, cfg.Warnings[0], part)
			}
		}
		if stays := !strings.Contains(env, "GRACE_PERIOD="); stays != slices.Equal(cfg.Env, []string{env}) {
			t.Errorf("%s: the command gets %q", env, cfg.Env)
		}
	}
	_, odd, err := parse([]string{"x"}, []string{"LAMEDUCK_A\nB=1"})
	if err != nil || len(odd.unknown) != 1 || strings.Contains(odd.unknown[0], "\n") {
		t.Errorf("a name with a newline: warnings %q, error %v", odd.unknown, err)
	}
}

// TestForgery: whatever the words and variables hold, lameduck says one line, of
// printable characters, that begins as its lines do; in JSON an object.
func TestForgery(t *testing.T) {
	const forged = "x\x1b[2J\x1b]0;t\a\nlameduck: forged\r\u009b2J\u2028\u202e\x7f\xff"
	var cases [][2][]string // words, variables
	for name := range grammar(t) {
		if slices.Contains(twinless, name) {
			continue
		}
		value := forged
		if name == "termination-log" || name == "alive-file" {
			value = "/no/such/" + forged // or the file would be made
		}
		cases = append(cases, [2][]string{{"--" + name + "=" + value, "--", "/no/such"}}, [2][]string{{"--", "/no/such"}, {variableOf(name) + "=" + value}})
	}
	cases = append(cases,
		[2][]string{{"--" + forged, "x"}}, [2][]string{{"-" + forged, "x"}}, [2][]string{{"/no/such/" + forged}}, [2][]string{{"--delay", forged, "x"}},
		[2][]string{{"hold", "--" + forged}}, [2][]string{{"hold", forged}}, [2][]string{{"watch", "--count-port=" + forged}}, [2][]string{{"watch", forged}},
		[2][]string{{"install", "--" + forged}}, [2][]string{{"install", "/no/such/" + forged}}, [2][]string{{"presets", forged}},
		[2][]string{{"/no/such"}, {"LAMEDUCK_" + forged + "=1"}}, [2][]string{{"/no/such"}, {"LAMEDUCK_QUIET_FOR=" + forged}})
	for _, c := range cases {
		for _, format := range []string{"text", "json"} {
			got := run(t, append(c[1], "LAMEDUCK_LOG_FORMAT="+format), c[0]...)
			if got.code < exitFailed || got.out != "" || got.errOut == "" {
				t.Errorf("%q %q: left with %d, said %q and %q", c[0], c[1], got.code, got.out, got.errOut)
			}
			for line := range strings.Lines(got.errOut) {
				text, ended := strings.CutSuffix(line, "\n")
				if !ended || text != shim.Printable(text) || !strings.HasPrefix(text, "lameduck: ") && !json.Valid([]byte(text)) {
					t.Errorf("%q %q: said %q", c[0], c[1], line)
				}
			}
		}
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"abc", "abc", 0}, {"abc", "axc", 1}, {"abc", "bc", 1}, {"abc", "abxc", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 2}} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("edits(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// badValues are refused, whether the flag or its variable has them; each with
// what would be right. Empty ones are in TestRefused: variables may be empty.
var badValues = map[string]struct {
	values []string
	right  string
}{
	"delay":               {[]string{"x", "-1", "-1s", "1x", "1d", "1e3", "0x5", "inf", "NaN", "1,5", "1:30", "5 s", "2h 3m", "99999999999", "1e400"}, "1m30s"},
	"grace-period":        {[]string{"x", "-1", "1d", "inf"}, "1m30s"},
	"linger":              {[]string{"x", "-1", "1d", "inf"}, "1m30s"},
	"rewrite":             {[]string{"TERM", "TERM=USR1", "TERM-USR1", "15"}, "FROM:TO"},
	"stop-signal":         {[]string{"x", "0", "65", "-1", "RTMIN+31", "TERM,", ",TERM", "TERM,,INT", "TERM INT", "TERM:INT"}, "1 to 64"},
	"parent-death-signal": {[]string{"x", "0", "65", "-1", "TERM,INT"}, "1 to 64"},
	"exit-code":           {[]string{"x", "256", "-1", "1:256", ":1", "1:", "1:x", "1:2:3", "1.5", "143,", "TERM"}, "FROM:TO"},
	"until":               {[]string{"x", "QUIET", "quiet,drained", "gone"}, "elapsed, settled, quiet or drained"},
	"quiet-for":           {[]string{"x", "-1", "1d", "0"}, "500ms"},
	"max-silence":         {[]string{"x", "-1", "1d", "0"}, "500ms"},
	"max-delay":           {[]string{"x", "-1", "1d", "0"}, "500ms"},
	"count-port":          {[]string{"x", "0", "-1", "65536", "80,", "80-90", "http"}, "1 to 65535"},
	"ignore-port":         {[]string{"x", "0", "-1", "65536", "80,", "80-90", "http"}, "1 to 65535"},
	"ignore-peer":         {[]string{"x", "10.0.0", "10.0.0.0/33", "10.0.0.1:80", "fe80::1%eth0", "::ffff:10.0.0.0/104", "10.0.0.1,"}, "10.0.0.0/8"},
	"termination-log":     {nil, ""},
	"wait-gone":           {nil, ""},
	"alive-file":          {nil, ""},
	"preset":              {[]string{"x", "ngnix", "none", "nginx,haproxy"}, "did you mean"},
	"health":              {[]string{"x", "9000", ":x", ":0", ":9000=", ":9000=:9000", ":9000=:8080=:7070", "localhost:80"}, ":"},
	"health-during":       {[]string{"x", "PASS", "pass,fail"}, "fail"},
	"on-stop":             {[]string{" ", "'a", `a"b`, `a\`}, ""},
	"stop-schedule":       {[]string{"x", "TERM/", "/TERM", "TERM/x/KILL", "TERM/15/65x", "TERM 5", "-65", "0", "forever", "forever/5", "5/5", "TERM/-5s"}, ""},
	"kill-after":          {[]string{"x", "-1", "1d", "0"}, "500ms"},
	"log-format":          {[]string{"x", "JSON", "text,json"}, "text or json"},
	"log-level":           {[]string{"x", "WARN", "warning", "2", "warn,info"}, "error, warn, info or debug"},
}

// oneLine wants an error of one line that has all of says in it.
func oneLine(t *testing.T, of string, err error, says ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s is no error", of)
		return
	}
	for _, part := range append(says, "") {
		if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q; want one line with %q in it", of, err, part)
		}
	}
}

func TestBadValues(t *testing.T) {
	try := func(args, env []string) error {
		c, t, err := parse(args, env)
		if err == nil {
			_, err = c.config(t)
		}
		return err
	}
	for flag, bad := range badValues {
		for _, value := range bad.values {
			flagged := "--" + flag + "=" + value
			oneLine(t, flagged, try([]string{flagged, "x"}, nil), "--"+flag+"="+shim.Quote(value)+": ", bad.right)
			set := variableOf(flag) + "=" + value
			oneLine(t, set, try([]string{"x"}, []string{set}), variableOf(flag)+"="+shim.Quote(value)+": ", bad.right)
		}
	}
	for name, flag := range grammar(t) {
		if slices.Contains(twinless, name) {
			continue
		}
		if _, ok := badValues[name]; ok == flag.IsBool() {
			t.Errorf("--%s has no bad values here, or needs none", name)
		}
		if flag.IsBool() {
			oneLine(t, name, try([]string{"--" + name + "=maybe", "x"}, nil), "--"+name, `"maybe"`, "true")
			oneLine(t, name, try([]string{"x"}, []string{variableOf(name) + "=maybe"}), variableOf(name), "maybe", "true")
		}
	}
	for _, value := range []string{"KILL:TERM", "STOP:0", "9:15"} { // here the values are signals, but not to be caught
		oneLine(t, value, try([]string{"-r", value, "x"}, nil), "--rewrite="+value, "never reaches lameduck")
	}
	for _, value := range []string{"FOO:TERM", "TERM:FOO", "TERM:65", "TERM:USR1,FOO:HUP", "0:TERM", "TERM:", ":TERM", "TERM:USR1:HUP"} {
		oneLine(t, value, try([]string{"-r", value, "x"}, nil), "--rewrite="+value+": ", "1 to 64")
	}
	for _, value := range []string{"0", "0.5", "999ms"} {
		oneLine(t, value, try([]string{"-d", "1", "--grace-period", value, "x"}, nil), "--grace-period="+value+": ", "at least 1s")
	}
}

// result is how a run of lameduck ended.
type result struct {
	code        int
	out, errOut string
}

// run is lameduck with args, in a process of its own, whose environment is PATH
// and env.
func run(t *testing.T, env []string, args ...string) (r result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), asMain + "=1", raceInHaste}, env...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Errorf("%q does not end", args)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// refused are calls that are, and what is said of them.
var refused = []struct {
	args  []string
	env   string
	says  string
	place bool // not by itself: a place might have it
}{
	{nil, "", "no command", false},
	{[]string{"--"}, "", "no command", false},
	{[]string{"-d", "5"}, "", "no command", false},
	{[]string{"hold", "server"}, "", "lameduck -- hold", true},
	{[]string{"watch", "/x"}, "", "lameduck -- watch", true},
	{[]string{"watch", "--json=x"}, "", "--json", true},
	{[]string{"hold", "--rewrite=TERM:USR1"}, "", "lameduck hold --help", true},
	{[]string{"presets", "--all"}, "", "lameduck presets", false},
	{[]string{"presets", "haproxxy"}, "", "did you mean haproxy?", false},
	{[]string{"presets", "a", "b"}, "", "lameduck presets", false},

	{[]string{"--quiet-for=2", "echo"}, "", "--quiet-for=2 has no effect", false},
	{[]string{"--delay=2", "--max-silence=2", "echo"}, "", "--max-silence", false},
	{[]string{"--ignore-probes", "--until=elapsed", "echo"}, "", "--ignore-probes=true has no effect", false},
	{[]string{"--count-port=80", "echo"}, "", "--count-port=80 has no effect", false},
	{[]string{"--ignore-port=80", "echo"}, "", "--ignore-port=80 has no effect", false},
	{[]string{"--ignore-peer=::1", "echo"}, "", "--ignore-peer=::1 has no effect", false},
	{[]string{"--max-delay=2", "echo"}, "", "--max-delay=2 has no effect", false},
	{[]string{"--until=quiet", "--max-delay=25", "--grace-period=30", "echo"}, "", "does not fit", false},
	{[]string{"--until=quiet", "--delay=9", "--max-delay=8", "echo"}, "", "longer than --max-delay", false},
	{[]string{"--preset=", "echo"}, "", "--preset=: ", false},
	{[]string{"--dely=5", "echo"}, "", "--delay", false},
	{[]string{"--Delay=5", "echo"}, "", "--delay", false},
	{[]string{"-x", "echo"}, "", "-x", false},
	{[]string{"--no-help", "echo"}, "", "--no-help", false},
	{[]string{"--command=echo"}, "", "--command", false},
	{[]string{"--version", "--no-such-flag"}, "", "--no-such-flag", false},

	{[]string{"-d"}, "", "-d has no value: give -d VALUE", false},
	{[]string{"--delay"}, "", "--delay", false},
	{[]string{"--delay", "--", "echo"}, "", "--delay", false},
	{[]string{"-d", "-5", "echo"}, "", "-d has no value: give -d VALUE", false},
	{[]string{"-dx", "echo"}, "", "--delay=x", false},
	{[]string{"-d", "5\n6", "echo"}, "", `--delay="5\n6": `, false},

	{[]string{"--delay=", "echo"}, "", "--delay=: ", false},
	{[]string{"-d", "", "echo"}, "", "--delay=: ", false},
	{[]string{"--delay=", "echo"}, "LAMEDUCK_DELAY=5", "--delay=: ", false},
	{[]string{"--grace-period=", "-d", "1", "echo"}, "", "--grace-period=: ", false},
	{[]string{"--rewrite=", "echo"}, "", "--rewrite=: ", false},
	{[]string{"--stop-signal=", "echo"}, "", "--stop-signal=: ", false},
	{[]string{"--exit-code=", "echo"}, "", "--exit-code=: ", false},
	{[]string{"--log-level=", "echo"}, "", "--log-level=: ", false},

	{[]string{"echo"}, "LAMEDUCK_DELAY=x", "LAMEDUCK_DELAY=x", false},
	{[]string{"--delay=5", "--grace-period=5", "echo"}, "", "--grace-period=5s", false},
	{[]string{"echo"}, "LAMEDUCK_DELAY=5 LAMEDUCK_GRACE_PERIOD=5", "does not fit", false},
	{[]string{"--delay=9223372036", "--grace-period=10", "echo"}, "", "8760h", false},
	{[]string{"--grace-period=10", "echo"}, "", "--delay", false},
	{[]string{"--grace-period=10", "--delay=0", "echo"}, "", "--delay", false},
	{[]string{"--grace-period=10", "echo"}, "LAMEDUCK_DELAY=0", "--delay", false},
	{[]string{"-r", "HUP:0,HUP:INT", "echo"}, "", "--rewrite=HUP:INT", false},
	{[]string{"-r", "HUP:0", "-r", "1:2", "echo"}, "", "two rewrites of HUP", false},
	{[]string{"-e", "1,1:2", "echo"}, "", "--exit-code=1:2", false},
	{[]string{"--stop-signal=KILL", "echo"}, "", "--stop-signal=KILL", false},
	{[]string{"--stop-signal=17", "echo"}, "", "--stop-signal=CHLD", false},
	{[]string{"--wait-gone=", "echo"}, "", "--wait-gone=: ", false},
	{[]string{"--on-stop=", "echo"}, "", "--on-stop=: ", false},
	{[]string{"--alive-file=/no/such/folder/file", "echo"}, "", "--alive-file=/no/such/folder/file: cannot create the file: no such file or directory", true},
	{[]string{"--termination-log=/no/such/folder/file", "echo"}, "", "--termination-log=/no/such/folder/file: ", true},
	{[]string{"--termination-log=/", "echo"}, "", "--termination-log=/: ", true},
	{[]string{"--stop-schedule=TERM/20/KILL", "--grace-period=15", "echo"}, "", "a grace period of 21s", false},
	{[]string{"--stop-schedule=TERM/forever/KILL", "echo"}, "", "without a wait", false},
	{[]string{"--stop-schedule=TERM/forever/5/forever/KILL", "echo"}, "", "forever is given twice", false},
	{[]string{"--stop-schedule=USR1/5/KILL/5/TERM", "echo"}, "", "--stop-schedule=USR1/5/KILL/5/TERM: TERM comes after KILL, which ends the command: put KILL last", false},
	{[]string{"--stop-schedule=TERM/5/KILL/forever/TERM/5", "echo"}, "", "TERM comes after KILL", false},
	{[]string{"echo"}, "LAMEDUCK_STOP_SCHEDULE=KILL/TERM", "LAMEDUCK_STOP_SCHEDULE=KILL/TERM: TERM comes after KILL", false},
	{[]string{"--stop-schedule=USR1/10/TERM", "--kill-after=8", "echo"}, "", "--kill-after=8s with --stop-schedule=USR1/10s/TERM: KILL comes at 8s and TERM only at 10s: give --kill-after=11 or more, or put KILL into the schedule", false},
	{[]string{"--stop-schedule=USR1/10/TERM", "--kill-after=10", "echo"}, "", "give --kill-after=11 or more", false},
	{[]string{"--kill-after=8", "echo"}, "LAMEDUCK_STOP_SCHEDULE=USR1/10.5/TERM", "give --kill-after=11 or more", false},
	{[]string{"--stop-schedule=USR1/10/forever/TERM/5", "--kill-after=8", "echo"}, "", "give --kill-after=11 or more", false},
	{[]string{"--kill-after=30", "--grace-period=20", "echo"}, "", "a grace period of 31s", false},
	{[]string{"--kill-after=9", "--grace-period=10", "--wait-gone=/x", "echo"}, "", "no time for the hold", false},
	{[]string{"--on-stop=true", "--stop-schedule=30", "echo"}, "", "no time for the hold", false},
}

// TestRefused: what is wrong is said on one line, nothing is started, and the
// exit code is 125.
func TestRefused(t *testing.T) {
	for _, c := range refused {
		got := run(t, strings.Fields(c.env), c.args...)
		if got.code != exitFailed || got.out != "" {
			t.Errorf("%q %s: left with %d, %q on standard output", c.args, c.env, got.code, got.out)
		}
		if line := got.errOut; !strings.HasPrefix(line, "lameduck: ") || strings.Index(line, "\n") != len(line)-1 || !strings.Contains(line, c.says) {
			t.Errorf("%q %s: says %q, want one line with %q in it", c.args, c.env, line, c.says)
		}
	}
}

// TestAsked: what was asked for goes to standard output, whatever else there is.
func TestAsked(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--help", helpText},
		{"-h", helpText},
		{"-d 5 -h no-such-program", helpText},
		{"--help --delay=x", helpText},
		{"--help-all", helpText + helpAllText},
		{"--help --help-all", helpText + helpAllText},
		{"hold --help", holdHelp},
		{"hold -d x -h", holdHelp},
		{"watch --help", watchHelp},
		{"--version", "lameduck version dev\n"},
		{"--version -- echo", "lameduck version dev\n"},
	} {
		if got := run(t, []string{"LAMEDUCK_DELAY=nonsense", "LAMEDUCK_X=1"}, strings.Fields(c.args)...); got != (result{0, c.want, ""}) {
			t.Errorf("%s: %+v, want %q", c.args, got, c.want)
		}
	}
}

// TestRuns: the command's words, environment and exit code are its own.
func TestRuns(t *testing.T) {
	plain := t.TempDir() + "/plain"
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	show := []string{"sh", "-c", `echo "$0 $* ($LAMEDUCK_DELAY,$LAMEDUCK_LOG_LEVEL,$LAMEDUCK_PORT,$LAMEDUCK_X)"`, "--", "-d", "x"}
	for _, c := range []struct {
		env  string
		args []string
		want result
	}{
		{"", []string{"true"}, result{}},
		{"", []string{"sh", "-c", "exit 7"}, result{code: 7}},
		{"", []string{"-e", "7:9", "sh", "-c", "exit 7"}, result{code: 9}},
		{"", []string{"-e", "7", "sh", "-c", "exit 7"}, result{}},
		{"", []string{"-e", "7", "sh", "-c", "exit 8"}, result{code: 8}},
		{"", []string{"sh", "-c", "kill -USR1 $$"}, result{code: 128 + int(syscall.SIGUSR1)}},
		{"", []string{"-e", "137:3", "--", "sh", "-c", "kill -KILL $$"}, result{code: 3}},
		{"", []string{"sh", "-c", "exit 125"}, result{code: 125}},
		{"", []string{"sh", "-c", "echo out; echo err >&2"}, result{out: "out\n", errOut: "err\n"}},
		{"", []string{"/no/such/program"}, result{code: 127, errOut: "lameduck: cannot run \"/no/such/program\": no such file or directory\n"}},
		{"", []string{"--", "hold"}, result{code: 127, errOut: "lameduck: cannot run \"hold\": no such file or directory\n"}},
		{"", []string{plain}, result{code: 126, errOut: fmt.Sprintf("lameduck: cannot run %q: permission denied\n", plain)}},
		{"LAMEDUCK_DELAY=1 LAMEDUCK_LOG_LEVEL=error LAMEDUCK_PORT=p LAMEDUCK_X=x", show, result{out: "-- -d x (,,p,x)\n"}},
		{"LAMEDUCK_DELAI=1", []string{"true"}, result{errOut: "lameduck: warning: LAMEDUCK_DELAI is no variable of lameduck: did you mean LAMEDUCK_DELAY?\n"}},
		{"LAMEDUCK_DELAI=1", []string{"--log-level=error", "true"}, result{}},
		{"LAMEDUCK_GRACE_PERIOD=60", []string{"true"}, result{errOut: "lameduck: warning: LAMEDUCK_GRACE_PERIOD=60 has no effect without a hold: give --delay or --until too\n"}},
	} {
		if got := run(t, strings.Fields(c.env), c.args...); got != c.want {
			t.Errorf("%s %q:\n got %+v\nwant %+v", c.env, c.args, got, c.want)
		}
	}
}

// variableOf is a flag's twin.
func variableOf(flag string) string {
	return "LAMEDUCK_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// grammar is the flags, by their names.
func grammar(t testing.TB) map[string]*kong.Flag {
	t.Helper()
	k, err := kong.New(&cli{}, kong.Name("lameduck"), kong.NoDefaultHelp())
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]*kong.Flag{}
	for _, flag := range k.Model.Flags {
		flags[flag.Name] = flag
	}
	return flags
}

var (
	longFlag  = regexp.MustCompile(`--([a-z]+(?:-[a-z]+)*)`)
	shortFlag = regexp.MustCompile(`(?m)^ +(-[a-zA-Z], --[a-z-]*[a-z])`)
	variable  = regexp.MustCompile(`LAMEDUCK_[A-Z_]*[A-Z]`)
	example   = regexp.MustCompile(`(?m)^ +lameduck (.*)$`)
)

// found is the last group of each match of re, once and in order.
func found(re *regexp.Regexp, text string) []string {
	set := map[string]bool{}
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		set[m[len(m)-1]] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// TestHelp holds the help against the grammar, both ways.
func TestHelp(t *testing.T) {
	flags := grammar(t)
	all := helpText + helpAllText
	if want, got := slices.Sorted(maps.Keys(flags)), found(longFlag, all); !slices.Equal(got, want) {
		t.Errorf("the help has the flags\n%v\nthe grammar\n%v", got, want)
	}
	var twins, shorts []string
	for name, flag := range flags {
		if !slices.Contains(twinless, name) {
			twins = append(twins, variableOf(name))
		}
		if flag.Short != 0 {
			shorts = append(shorts, fmt.Sprintf("-%c, --%s", flag.Short, name))
		}
	}
	twins = append(twins, hooked...)
	slices.Sort(twins)
	slices.Sort(shorts)
	if got := found(variable, all); !slices.Equal(got, twins) {
		t.Errorf("the help has the variables\n%v\nthe flags\n%v", got, twins)
	}
	if got := found(shortFlag, all); !slices.Equal(got, shorts) {
		t.Errorf("the help has the short flags\n%q\nthe grammar\n%q", got, shorts)
	}
}

// TestHelpFits: --help is one screen, and no line of either is too long for it.
func TestHelpFits(t *testing.T) {
	if n := strings.Count(helpText, "\n"); n > 40 {
		t.Errorf("--help has %d lines", n)
	}
	for line := range strings.Lines(helpText + helpAllText + holdHelp + watchHelp) {
		if line = strings.TrimSuffix(line, "\n"); len(line) > 80 || line != strings.TrimRight(line, " \t") || strings.Contains(line, "\t") {
			t.Errorf("too long, or with odd blanks: %q", line)
		}
	}
	for _, text := range []string{helpText, helpAllText, holdHelp, watchHelp} {
		if !strings.HasSuffix(text, "\n") {
			t.Error("no newline at the end")
		}
	}
}

// TestHelpExamples: what the help tells people to type is right, and brings no
// warning in Kubernetes.
func TestHelpExamples(t *testing.T) {
	examples := found(example, helpText+helpAllText)
	if len(examples) < 10 {
		t.Fatalf("found only %q", examples)
	}
	for _, args := range examples {
		cfg, err := readBoth(args, "KUBERNETES_SERVICE_HOST=10.0.0.1")
		if err == nil {
			err = cfg.Validate()
		}
		if err != nil || len(cfg.Command) == 0 || len(cfg.Warnings) > 0 {
			t.Errorf("lameduck %s: %+v, %v", args, cfg, err)
		}
	}
}

// TestSubcommandHelp holds the help of hold and watch against their grammars, and
// their examples too.
func TestSubcommandHelp(t *testing.T) {
	for _, c := range []struct {
		name, help string
		grammar    any
		others     []string // flags of lameduck itself that the help names
	}{
		{"hold", holdHelp, &holdCLI{}, []string{"help-all"}},
		{"watch", watchHelp, &watchCLI{}, []string{"help-all"}},
	} {
		k, err := kong.New(c.grammar, kong.Name("lameduck"), kong.NoDefaultHelp())
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(c.others)
		for _, flag := range k.Model.Flags {
			if flag.Name != "help" {
				want = append(want, flag.Name)
			}
		}
		slices.Sort(want)
		if got := found(longFlag, c.help); !slices.Equal(got, want) {
			t.Errorf("the help of %s has the flags\n%v\nits grammar\n%v", c.name, got, want)
		}
	}
	words := regexp.MustCompile(`/lameduck, hold, ([^]]*)\]`).FindStringSubmatch(holdHelp)
	if words == nil {
		t.Fatal("no example of a hook")
	}
	var c holdCLI
	twins, err := read(&c, strings.Split(words[1], ", "), []string{"KUBERNETES_SERVICE_HOST=10.0.0.1"}, &cli{}, "")
	if err != nil {
		t.Fatal(err)
	}
	cfg := shim.Config{Env: twins.rest, Until: shim.Quiet}
	if err := c.holdFlags.config(twins, &cfg); err != nil || cfg.Validate() != nil || cfg.Delay != 10*time.Second {
		t.Errorf("%q: %+v, %v", words[1], cfg, err)
	}
}
