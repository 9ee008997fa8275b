package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// asMain is a variable that makes the test binary run as lameduck.
const asMain = "CLI_TEST_MAIN"

// raceInHaste saves a second at each process's exit under the race detector.
const raceInHaste = "GORACE=atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestForgery: whatever the arguments and variables contain, lameduck prints one line of
// printable characters with the beginning of lameduck's lines, or a JSON object.
func TestForgery(t *testing.T) {
	const forged = "x\x1b[2J\x1b]0;t\a\nlameduck: forged\r\u009b2J\u2028\u202e\x7f\xff"
	var cases [][2][]string // words, variables
	for name, variable := range envFlags(t) {
		value := forged
		if name == "termination-log" || name == "alive-file" {
			value = "/no/such/" + forged // or the file would be made
		}
		cases = append(cases, [2][]string{{"--" + name + "=" + value, "--", "/no/such"}}, [2][]string{{"--", "/no/such"}, {variable + "=" + value}})
	}
	cases = append(cases,
		[2][]string{{"--" + forged, "x"}}, [2][]string{{"-" + forged, "x"}}, [2][]string{{"/no/such/" + forged}}, [2][]string{{"--delay", forged, "x"}},
		[2][]string{{"hold", "--explain", "--" + forged}}, [2][]string{{"hold", "--explain", forged}}, [2][]string{{"watch", "--count-port=" + forged}}, [2][]string{{"watch", forged}},
		[2][]string{{"install", "--" + forged}}, [2][]string{{"install", "/no/such/" + forged}}, [2][]string{{"presets", forged}},
		[2][]string{{"/no/such"}, {"LAMEDUCK_" + forged + "=1"}}, [2][]string{{"/no/such"}, {"LAMEDUCK_QUIET_FOR=" + forged}})
	for _, c := range cases {
		for _, format := range []string{"text", "json"} {
			got := call(t, append(c[1], "LAMEDUCK_LOG_FORMAT="+format), c[0]...)
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

// result is the end of a run of lameduck.
type result struct {
	code        int
	out, errOut string
}

// call runs lameduck with args in a new process, with PATH and env as the environment.
func call(t *testing.T, env []string, args ...string) result {
	t.Helper()
	return callAs(t, "lameduck", env, args...)
}

// callAs is call by another name.
func callAs(t *testing.T, name string, env []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Args[0] = name
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

// refused are command lines that lameduck refuses, and a part of the error.
var refused = []struct {
	args  []string
	env   string
	says  string
	place bool // the error depends on the machine or the subcommand: --explain does not find the error
}{
	{nil, "", "no command to run: lameduck [flags] -- COMMAND [ARG...]; an ENTRYPOINT resets the CMD of the base image, so repeat CMD", false},
	{[]string{"--"}, "", "no command", false},
	{[]string{"hold", "server", "--help"}, "", "lameduck -- hold", true},
	{[]string{"watch", "/x"}, "", "lameduck -- watch", true},
	{[]string{"watch", "--json=x"}, "", "--json", true},
	{[]string{"hold", "--rewrite=TERM:USR1", "--explain"}, "", "lameduck hold --help", true},
	{[]string{"presets", "--all"}, "", "lameduck presets", false},
	{[]string{"presets", "haproxxy"}, "", "did you mean haproxy?", false},
	{[]string{"presets", "a", "b"}, "", "lameduck presets", false},

	{[]string{"--quiet-for=2", "echo"}, "", "--quiet-for=2 (LAMEDUCK_QUIET_FOR) has no effect", false},
	{[]string{"--delay=2", "--max-silence=2", "echo"}, "", "--max-silence", false},
	{[]string{"--ignore-probes", "--until=elapsed", "echo"}, "", "--ignore-probes=true (LAMEDUCK_IGNORE_PROBES) has no effect", false},
	{[]string{"--no-ignore-probes", "--delay=2", "echo"}, "", "--ignore-probes=false (LAMEDUCK_IGNORE_PROBES) has no effect", false},
	{[]string{"--no-ignore-prboes", "-u", "quiet", "echo"}, "", "did you mean --no-ignore-probes?", false},
	{[]string{"--no-ignore-probes=x", "-u", "quiet", "echo"}, "", "--no-ignore-probes takes no value: give --no-ignore-probes alone", false},
	{[]string{"--count-port=80", "echo"}, "", "--count-port=80 (LAMEDUCK_COUNT_PORT) has no effect", false},
	{[]string{"--max-delay=2", "echo"}, "", "--max-delay=2 (LAMEDUCK_MAX_DELAY) has no effect", false},
	{[]string{"--until=quiet", "--max-delay=25", "--grace-period=30", "echo"}, "", "does not fit", false},
	{[]string{"--preset=", "echo"}, "", "--preset= (LAMEDUCK_PRESET): ", false},
	{[]string{"-x", "echo"}, "", "-x", false},
	{[]string{"--no-help", "echo"}, "", "--no-help", false},
	{[]string{"--command=echo"}, "", "--command", false},
	{[]string{"--version", "--no-such-flag"}, "", "--no-such-flag", false},

	{[]string{"-d"}, "", "-d needs a value: give -d VALUE", false},
	{[]string{"--delay"}, "", "--delay", false},
	{[]string{"-d", "-5", "echo"}, "", "-d needs a value: give -d VALUE", false},
	{[]string{"-d", "5\n6", "echo"}, "", `--delay="5\n6" (LAMEDUCK_DELAY): `, false},

	{[]string{"--delay=", "echo"}, "", "--delay= (LAMEDUCK_DELAY): ", false},
	{[]string{"-d", "", "echo"}, "", "--delay= (LAMEDUCK_DELAY): ", false},
	{[]string{"--delay=", "echo"}, "LAMEDUCK_DELAY=5", "--delay= (LAMEDUCK_DELAY): ", false},
	{[]string{"--grace-period=", "-d", "1", "echo"}, "", "--grace-period= (LAMEDUCK_GRACE_PERIOD): ", false},
	{[]string{"--rewrite=", "echo"}, "", "--rewrite= (LAMEDUCK_REWRITE): ", false},

	{[]string{"echo"}, "LAMEDUCK_DELAY=x", "--delay=x (LAMEDUCK_DELAY): ", false},
	{[]string{"--delay=5", "--grace-period=5", "echo"}, "", "--grace-period=5 (LAMEDUCK_GRACE_PERIOD),", false},
	{[]string{"echo"}, "LAMEDUCK_DELAY=5 LAMEDUCK_GRACE_PERIOD=5", "does not fit", false},
	{[]string{"--grace-period=10", "echo"}, "", "--delay", false},
	{[]string{"--grace-period=10", "--delay=0", "echo"}, "", "--delay", false},
	{[]string{"--health-during=fail", "echo"}, "LAMEDUCK_DELAY=0", "--health-during=fail (LAMEDUCK_HEALTH_DURING) has no effect", false},
	{[]string{"-r", "HUP:0", "-r", "1:2", "echo"}, "", "HUP is rewritten twice", false},
	{[]string{"--stop-signal=KILL", "echo"}, "", "--stop-signal=KILL", false},
	{[]string{"--wait-gone=", "echo"}, "", "--wait-gone= (LAMEDUCK_WAIT_GONE): ", false},
	{[]string{"--on-stop=", "echo"}, "", "--on-stop= (LAMEDUCK_ON_STOP): ", false},
	{[]string{"--alive-file=/no/such/folder/file", "echo"}, "", "--alive-file=/no/such/folder/file (LAMEDUCK_ALIVE_FILE): cannot create the file: no such file or directory", true},
	{[]string{"--termination-log=/no/such/folder/file", "echo"}, "", "--termination-log=/no/such/folder/file (LAMEDUCK_TERMINATION_LOG): ", true},
	{[]string{"--termination-log=/", "echo"}, "", "--termination-log=/ (LAMEDUCK_TERMINATION_LOG): ", true},
	{[]string{"--stop-schedule=USR1/5/KILL/5/TERM", "echo"}, "", "--stop-schedule=USR1/5/KILL/5/TERM (LAMEDUCK_STOP_SCHEDULE): TERM comes after KILL, which ends the command: put KILL last", false},
	{[]string{"--stop-schedule=TERM/forever/KILL", "echo"}, "", "without a wait", false},
	{[]string{"--stop-schedule=USR1/10/forever/TERM/5", "--kill-after=8", "echo"}, "", "give --kill-after=11 (LAMEDUCK_KILL_AFTER) or more", false},
	{[]string{"--stop-schedule=USR1/10/TERM", "--kill-after=8", "echo"}, "", "--kill-after=8s (LAMEDUCK_KILL_AFTER) with --stop-schedule=USR1/10s/TERM (LAMEDUCK_STOP_SCHEDULE): KILL comes at 8s and TERM only at 10s: give --kill-after=11 (LAMEDUCK_KILL_AFTER) or more, or put KILL into the schedule", false},
	{[]string{"--kill-after=9", "--grace-period=10", "--wait-gone=/x", "echo"}, "", "no time for the hold", false},
	{[]string{"-u", "quiet", "echo"}, "LAMEDUCK_COUNT_PORT=80 LAMEDUCK_IGNORE_PORT=80", "--count-port=80 (LAMEDUCK_COUNT_PORT) and --ignore-port=80 (LAMEDUCK_IGNORE_PORT) contradict each other", false},
	{[]string{"watch", "--count-port=80", "--ignore-port=80"}, "", "contradict each other", true},
	{[]string{"watch"}, "LAMEDUCK_COUNT_PORT=80 LAMEDUCK_IGNORE_PORT=80", "contradict each other", true},
	{[]string{"--stop-schedule=USR1/30/KILL", "--kill-after=5", "echo"}, "", "--kill-after=5s (LAMEDUCK_KILL_AFTER) with --stop-schedule=USR1/30s/KILL (LAMEDUCK_STOP_SCHEDULE): KILL is given twice: keep one", false},
	{[]string{"--stop-schedule=USR1/5/KILL", "--kill-after=30", "echo"}, "", "KILL is given twice: keep one", false},
	{[]string{"--stop-schedule=USR1/forever/TERM/5/KILL/5", "--kill-after=30", "echo"}, "", "KILL is given twice: keep one", false},
	{[]string{"--stop-schedule=20", "--kill-after=30", "echo"}, "", "KILL is given twice: keep one", false},
	{[]string{"--kill-after=5", "echo"}, "LAMEDUCK_STOP_SCHEDULE=USR1/30/KILL", "KILL is given twice: keep one", false},
}

// TestRefused: the error is one line, nothing is started, and the exit code is 125.
func TestRefused(t *testing.T) {
	for _, c := range refused {
		got := call(t, strings.Fields(c.env), c.args...)
		if got.code != exitFailed || got.out != "" {
			t.Errorf("%q %s: left with %d, %q on standard output", c.args, c.env, got.code, got.out)
		}
		if line := got.errOut; !strings.HasPrefix(line, "lameduck: ") || strings.Index(line, "\n") != len(line)-1 || !strings.Contains(line, c.says) {
			t.Errorf("%q %s: says %q, want one line with %q in it", c.args, c.env, line, c.says)
		}
	}
}

// TestAsked: help and version go to standard output, whatever the other flags and the
// variables are.
func TestAsked(t *testing.T) {
	help := new(cli.Line)
	hold, _ := cli.ParseHold([]string{"-h"}, nil)
	watch, _ := cli.ParseWatch([]string{"-h"}, nil)
	for _, c := range []struct{ args, want string }{
		{"--help", help.HelpText()},
		{"-h", help.HelpText()},
		{"-d 5 -h no-such-program", help.HelpText()},
		{"--help --delay=x", help.HelpText()},
		{"--help-all", help.HelpAllText()},
		{"--help --help-all", help.HelpAllText()},
		{"hold --help", hold.HelpText()},
		{"hold -d x -h", hold.HelpText()},
		{"watch --help", watch.HelpText()},
		{"install --help", installHelp},
		{"install /no/such --help-all", installHelp},
		{"presets -h", presetsHelp},
		{"presets nginx --help", presetsHelp},
		{"--version", "lameduck version dev, a plain build (see docs/install.md)\n"},
		{"--version -- echo", "lameduck version dev, a plain build (see docs/install.md)\n"},
	} {
		if got := call(t, []string{"LAMEDUCK_DELAY=nonsense", "LAMEDUCK_X=1"}, strings.Fields(c.args)...); got != (result{0, c.want, ""}) {
			t.Errorf("%s: %+v, want %q", c.args, got, c.want)
		}
	}
}

// TestRuns: the command's arguments, environment and exit code pass unaltered.
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
		{"", []string{"--", "hold"}, result{code: 127, errOut: "lameduck: cannot run \"hold\": no such file or directory; for the subcommand, give hold as the first word, before any flag\n"}},
		{"", []string{plain}, result{code: 126, errOut: fmt.Sprintf("lameduck: cannot run %q: permission denied\n", plain)}},
		{"LAMEDUCK_DELAY=1 LAMEDUCK_LOG_LEVEL=error LAMEDUCK_PORT=p LAMEDUCK_X=x", show, result{out: "-- -d x (,,p,x)\n"}},
		{"LAMEDUCK_DELAI=1", []string{"true"}, result{errOut: "lameduck: warning: unknown variable LAMEDUCK_DELAI: did you mean LAMEDUCK_DELAY?\n"}},
		{"LAMEDUCK_DELAI=1", []string{"--log-level=error", "true"}, result{}},
		{"LAMEDUCK_GRACE_PERIOD=60", []string{"true"}, result{errOut: "lameduck: warning: --grace-period=60 (LAMEDUCK_GRACE_PERIOD) has no effect without a hold: give --delay (LAMEDUCK_DELAY) or --until (LAMEDUCK_UNTIL) too\n"}},
	} {
		if got := call(t, strings.Fields(c.env), c.args...); got != c.want {
			t.Errorf("%s %q:\n got %+v\nwant %+v", c.env, c.args, got, c.want)
		}
	}
}

// envFlags returns the variables of lameduck's flags, by the names of the flags.
func envFlags(t testing.TB) map[string]string {
	t.Helper()
	names := map[string]string{}
	help := new(cli.Line).HelpAllText()
	for _, m := range regexp.MustCompile(`\(\$LAMEDUCK_([A-Z_]+)\)`).FindAllStringSubmatch(help, -1) {
		names[strings.ReplaceAll(strings.ToLower(m[1]), "_", "-")] = "LAMEDUCK_" + m[1]
	}
	if len(names) < 20 {
		t.Fatalf("only %v in --help-all", names)
	}
	return names
}
