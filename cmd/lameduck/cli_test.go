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
	"strings"
	"testing"
	"time"
	"unicode"

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

// result is the end of a run of lameduck.
type result struct {
	code        int
	out, errOut string
}

// call runs lameduck in a new process, under a name, with PATH and env as the environment.
func call(t *testing.T, env []string, name string, args ...string) result {
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

// splitCall splits a call into variables, the name and arguments.
func splitCall(t *testing.T, call string) (env []string, name string, args []string) {
	t.Helper()
	words, err := cli.SplitWords(call)
	if err != nil {
		t.Fatal(err)
	}
	for strings.Contains(words[0], "=") {
		env, words = append(env, words[0]), words[1:]
	}
	return env, words[0], words[1:]
}

var update = flag.Bool("update", false, "write what is said into console.txt")

// TestConsole: lameduck says what the file says, for each call behind "$ ".
func TestConsole(t *testing.T) {
	const file = "testdata/console.txt"
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(string(before), "\n$ ")
	after := head
	for session := range strings.SplitSeq(body, "\n$ ") {
		line, want, _ := strings.Cut(session, "\n")
		_, comment, _ := strings.Cut(want, "\n\n")
		if comment != "" {
			comment = "\n\n" + comment
		}
		want = strings.TrimSuffix(want, comment)
		env, name, args := splitCall(t, line)
		said := call(t, env, name, args...).said()
		if said != strings.TrimRight(want, "\n") && !*update {
			t.Errorf("$ %s\n%s\nwant\n%s", line, said, want)
		}
		after += "\n$ " + strings.TrimSuffix(line+"\n"+said, "\n") + comment
	}
	if *update {
		os.WriteFile(file, []byte(after+"\n"), 0o644)
	}
}

// said returns a result as a console shows it.
func (r result) said() string {
	text := ""
	for line := range strings.Lines(r.errOut) {
		text += "! " + line
	}
	text += r.out
	if r.code != 0 {
		text += fmt.Sprintf("[%d]", r.code)
	}
	return strings.TrimRight(text, "\n")
}

// TestForgery: whatever the arguments and variables contain, lameduck prints one line of
// printable characters with the beginning of lameduck's lines, or a JSON object.
func TestForgery(t *testing.T) {
	const forged = "x\x1b[2J\a\nlameduck: forged\r\u009b2J\u2028\u202e\x7f\xff"
	for line := range strings.FieldsSeq("--FORGED -FORGED /no/such/FORGED --delay=FORGED --alive-file=/no/such/FORGED:--:x " +
		"--termination-log=/no/such/FORGED:--:x hold:--explain:FORGED watch:--count-port=FORGED " +
		"watch:FORGED install:/no/such/FORGED presets:FORGED") {
		args := strings.Split(strings.ReplaceAll(line, "FORGED", forged), ":")
		for _, format := range []string{"text", "json"} {
			got := call(t, []string{"LAMEDUCK_LOG_FORMAT=" + format, "LAMEDUCK_" + forged + "=1"}, "lameduck", args...)
			for said := range strings.SplitSeq(strings.TrimSuffix(got.errOut, "\n"), "\n") {
				isOurs := strings.HasPrefix(said, "lameduck: ") || json.Valid([]byte(said))
				if !isOurs || strings.ContainsFunc(said, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Errorf("%q: said %q", args, said)
				}
			}
		}
	}
}

// TestAsked: help goes to standard output, whatever the other flags and the variables are.
func TestAsked(t *testing.T) {
	help := func(command, flag string) string {
		line, _ := cli.Parse(command, []string{flag}, nil)
		return line.HelpText()
	}
	short, long := help("run", "-h"), help("run", "--help-all")
	for args, want := range map[string]string{
		"-h": short, "-d 5 -h no-such-program": short, "--help --delay=x": short, "--help --help-all": long,
		"hold -d x -h": help("hold", "-h"), "watch --help": help("watch", "-h"),
		"install /no/such --help-all": installHelp, "presets nginx -h": presetsHelp,
	} {
		got := call(t, []string{"LAMEDUCK_DELAY=nonsense", "LAMEDUCK_X=1"}, "lameduck", strings.Fields(args)...)
		if got != (result{0, want, ""}) {
			t.Errorf("%s: %+v, want %q", args, got, want)
		}
	}
}

// TestExplainStartsNothing: --explain starts no program and creates no file.
func TestExplainStartsNothing(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	got := call(t, nil, "lameduck", "--explain", "--alive-file="+path("alive"), "--termination-log="+path("log"),
		"--on-stop=touch "+path("hook"), "--health=127.0.0.1:1", "--", "touch", path("command"))
	if list, _ := os.ReadDir(dir); got.code != 0 || len(list) > 0 {
		t.Errorf("left with %d, and made %v", got.code, list)
	}
}

// TestPresetTexts: each preset is listed, and explained on less than a screen, with its names and the
// source.
func TestPresetTexts(t *testing.T) {
	for _, p := range shim.Presets() {
		text := explainPreset(&p)
		listed := strings.Contains(presetList(), "\n"+p.Name+" ")
		names := strings.Join(append([]string{p.Name}, p.Aliases...), ", ") + "\n"
		if !listed || !strings.HasPrefix(text, names) || !strings.Contains(text, "\n  source    ") || strings.Count(text, "\n") > 24 {
			t.Errorf("%s: listed %v, explained as\n%s", p.Name, listed, text)
		}
	}
}
