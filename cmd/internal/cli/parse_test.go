package cli

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestCommand: the command begins where the flags end.
func TestCommand(t *testing.T) {
	for _, cells := range rows(`
		x                         | x
		x y z                     | x y z
		-- x                      | x
		-- x -- y                 | x -- y
		-d 1 x                    | x
		-d 1 -- x                 | x
		-d 1 -- -x                | -x
		-d1 -- --help             | --help
		-- hold                   | hold
		-d 1 hold                 | hold
		-- -- x                   | -- x
		-- -- -- x                | -- -- x
		x --                      | x --
		x -- -x                   | x -- -x
		x -d 9 --delay=9 -r       | x -d 9 --delay=9 -r
		x --version -h --help-all | x --version -h --help-all
		x --no-such-flag          | x --no-such-flag
		-d 1 x -d 9               | x -d 9
		-d 1 -- x -d 9 -- -e      | x -d 9 -- -e
		-                         | -
		                          |
		--                        |
		-d 1 --                   |
		-gd 1 x -d                | x -d
		-gd1 x                    | x
		--group x                 | x
		--group=false x           | x
		--delay 1 -- -- y         | -- y
		--subreaper x             | x
		- -g                      | - -g
		-g -- -g                  | -g
	`) {
		line, err := ParseRun(strings.Fields(cells[0]), nil)
		if err != nil {
			t.Errorf("%s: %v", cells[0], err)
			continue
		}
		if got := strings.Join(line.Command, " "); got != cells[1] || line.Help || line.HelpAll || line.Version {
			t.Errorf("%s: %q runs, want %q", cells[0], got, cells[1])
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

// TestLineErrors: flags that a subcommand or another program does not have, and words too many.
func TestLineErrors(t *testing.T) {
	_, err := ParseRun([]string{"-\xe9", "x"}, nil)
	oneLine(t, "bytes", err, `unknown flag "-\xe9": flags of the command follow the command`)
	for args, want := range map[string]string{
		"-p nginx":          "unknown flag -p: lameduck itself has the flag, lameduck hold does not (",
		"--stop-schedule=5": "unknown flag --stop-schedule: lameduck itself has the flag, lameduck hold does not (",
		"--json":            "unknown flag --json (",
		"x":                 `unexpected argument "x": leave it out, or run a program called hold with lameduck -- hold (lameduck hold --help lists the flags)`,
		"-- x":              `unexpected argument "x": leave`,
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

//go:embed testdata/hooks.txt
var hooks string

// TestTolerant: a preStop hook keeps every flag that is right, and says what is left out.
func TestTolerant(t *testing.T) {
	for _, cells := range rows(hooks) {
		args, env := splitCall(t, cells[0])
		line, _ := ParseHold(args, env)
		cfg, faults := line.Tolerant()
		got := fmt.Sprintf("%s for %v, grace %v, %v ports, JSON %v", cmp.Or(cfg.Until, "elapsed"), cfg.Delay, cfg.GracePeriod,
			cfg.IgnorePorts, cfg.JSON)
		for _, fault := range faults {
			got += "; " + fault.Error()
		}
		if got != cells[1] {
			t.Errorf("%s\n got %s\nwant %s", cells[0], got, cells[1])
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

// TestNearest: a name is near to another that is few edits away, whatever the case and the
// separators.
func TestNearest(t *testing.T) {
	names := []string{"DELAY", "GRACE_PERIOD", "LINGER", "QUIET_FOR", "INT", "QUIT"}
	for name, want := range map[string]string{"QIUT": "QUIT", "DELYA": "DELAY", "gracePeriod": "GRACE_PERIOD", "quiet-for": "QUIET_FOR", "IMAGE": "", "X": "", "": "", "GRACE": ""} {
		if got := nearest(name, names); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
