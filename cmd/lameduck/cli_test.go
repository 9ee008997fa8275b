package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

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
	calls := strings.Fields("--FORGED -FORGED /no/such/FORGED hold:--explain:--FORGED hold:--explain:FORGED watch:--count-port=FORGED " +
		"watch:FORGED install:--FORGED install:/no/such/FORGED presets:FORGED LAMEDUCK_FORGED=1:/no/such LAMEDUCK_QUIET_FOR=FORGED:/no/such")
	for name, variable := range envFlags(t) {
		value := "=FORGED"
		if name == "termination-log" || name == "alive-file" {
			value = "=/no/such/FORGED" // or the file would be made
		}
		calls = append(calls, "--"+name+value+":--:/no/such", variable+value+":--:/no/such")
	}
	for _, call := range calls {
		var env, args []string
		for word := range strings.SplitSeq(call, ":") {
			is := strings.HasPrefix(word, "LAMEDUCK_")
			word = strings.ReplaceAll(word, "FORGED", forged)
			if is {
				env = append(env, word)
			} else {
				args = append(args, word)
			}
		}
		for _, format := range []string{"text", "json"} {
			got := callAs(t, "lameduck", append(env, "LAMEDUCK_LOG_FORMAT="+format), args...)
			if got.code < exitFailed || got.out != "" || got.errOut == "" {
				t.Errorf("%q: left with %d, said %q and %q", call, got.code, got.out, got.errOut)
			}
			for line := range strings.Lines(got.errOut) {
				text, ended := strings.CutSuffix(line, "\n")
				if !ended || !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable) || !strings.HasPrefix(text, "lameduck: ") && !json.Valid([]byte(text)) {
					t.Errorf("%q: said %q", call, line)
				}
			}
		}
	}
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

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

var update = flag.Bool("update", false, "write what is said into the golden files")

// session is a call in a file of calls, and what it prints.
type session struct {
	env        []string
	name       string
	args       []string
	line, want string
}

// sessions reads a file of calls, each behind "$ ".
func sessions(t testing.TB, file string) (list []session) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split("\n"+string(text), "\n$ ")
	for _, part := range parts[1:] {
		part, _, _ = strings.Cut(part, "\n\n")
		line, want, _ := strings.Cut(part, "\n")
		env, name, args := splitCall(t, line)
		list = append(list, session{env, name, args, line, ended(want)})
	}
	return list
}

// splitCall splits a call into variables, the name and arguments.
func splitCall(t testing.TB, call string) (env []string, name string, args []string) {
	t.Helper()
	words, err := cli.SplitWords(call)
	if err != nil {
		t.Fatal(err)
	}
	first := slices.IndexFunc(words, func(word string) bool { return !strings.Contains(word, "=") })
	return words[:first], words[first], words[first+1:]
}

// said returns a result as a file of calls has it.
func (r result) said() string {
	text := ""
	for line := range strings.Lines(r.errOut) {
		text += "! " + line
	}
	text += r.out
	if r.code != 0 {
		text += fmt.Sprintf("[%d]", r.code)
	}
	return ended(text)
}

// ended returns a text with a newline at its end, if there is a text.
func ended(text string) string {
	if text = strings.TrimRight(text, "\n"); text != "" {
		text += "\n"
	}
	return text
}

// TestConsole: lameduck says what the files say.
func TestConsole(t *testing.T) {
	for _, file := range []string{"testdata/console.txt", "testdata/refused.txt"} {
		text, _ := os.ReadFile(file)
		for _, s := range sessions(t, file) {
			got := callAs(t, s.name, s.env, s.args...).said()
			text = bytes.Replace(text, []byte("$ "+s.line+"\n"+s.want), []byte("$ "+s.line+"\n"+got), 1)
			if got != s.want && !*update {
				t.Errorf("$ %s\n%swant\n%s", s.line, got, s.want)
			}
		}
		if *update {
			os.WriteFile(file, text, 0o644)
		}
	}
}

// TestRefused: what lameduck refuses is one line and 125, with --explain too.
func TestRefused(t *testing.T) {
	for _, s := range sessions(t, "testdata/refused.txt") {
		said, hasCode := strings.CutSuffix(s.want, "\n[125]\n")
		if !hasCode || strings.Contains(said, "\n") || !strings.HasPrefix(said, "! lameduck: ") {
			t.Errorf("$ %s\n%s\nwant one line and 125", s.line, s.want)
		}
		if got := call(t, s.env, append([]string{"--explain"}, s.args...)...).said(); got != s.want {
			t.Errorf("$ %s, with --explain\n%s\nwant\n%s", s.line, got, s.want)
		}
	}
}

// TestAsked: help goes to standard output, whatever the other flags and the variables are.
func TestAsked(t *testing.T) {
	hold, _ := cli.ParseHold([]string{"-h"}, nil)
	watch, _ := cli.ParseWatch([]string{"-h"}, nil)
	short, long := new(cli.Line).HelpText(), new(cli.Line).HelpAllText()
	for args, want := range map[string]string{
		"--help": short, "-h": short, "-d 5 -h no-such-program": short, "--help --delay=x": short,
		"--help-all": long, "--help --help-all": long,
		"hold --help": hold.HelpText(), "hold -d x -h": hold.HelpText(), "watch --help": watch.HelpText(),
		"install --help": installHelp, "install /no/such --help-all": installHelp,
		"presets -h": presetsHelp, "presets nginx --help": presetsHelp,
	} {
		got := call(t, []string{"LAMEDUCK_DELAY=nonsense", "LAMEDUCK_X=1"}, strings.Fields(args)...)
		if got != (result{0, want, ""}) {
			t.Errorf("%s: %+v, want %q", args, got, want)
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

// rows returns both sides of the lines of a table.
func rows(table string) (list [][2]string) {
	for line := range strings.Lines(table) {
		if left, right, found := strings.Cut(line, "|"); found {
			list = append(list, [2]string{strings.TrimSpace(left), strings.TrimSpace(right)})
		}
	}
	return list
}

// TestExplainStartsNothing: --explain starts no program and creates no file.
func TestExplainStartsNothing(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	got := call(t, nil, "--explain", "--alive-file="+path("alive"), "--termination-log="+path("log"), "--on-stop=touch "+path("hook"), "--health=127.0.0.1:1", "--", "touch", path("command"))
	if list, _ := os.ReadDir(dir); got.code != 0 || len(list) > 0 {
		t.Errorf("left with %d, and made %v", got.code, list)
	}
}

// TestPresetTexts: each preset is explained on less than a screen, by all names, with the
// source.
func TestPresetTexts(t *testing.T) {
	list := call(t, nil, "presets")
	names := []string{shim.AutoPreset}
	for _, p := range shim.Presets() {
		names = append(append(names, p.Name), p.Aliases...)
	}
	for _, name := range names {
		got := call(t, nil, "presets", name)
		if got.code != 0 || got.errOut != "" || strings.Count(got.out, "\n") > 24 {
			t.Errorf("%s: %+v", name, got)
		}
		if name != "auto" && !strings.Contains(got.out, "\n  source    ") {
			t.Errorf("%s: no source in %s", name, got.out)
		}
		for line := range strings.Lines(got.out) {
			if len(line) > 81 && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: a line of %d: %s", name, len(line), line)
			}
		}
		first, _, _ := strings.Cut(got.out, "\n")
		if !strings.Contains(first, name) || !strings.Contains("\n"+list.out, "\n"+strings.TrimSpace(strings.Split(first, ",")[0])+" ") {
			t.Errorf("%s is not listed, or is called %s", name, first)
		}
	}
	if strings.Count(list.out, "\n") > 30 {
		t.Errorf("the list is long:\n%s", list.out)
	}
}
