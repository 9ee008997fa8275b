package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// newFlag is all that a plain new flag takes besides its documentation: for each file, the
// line that it follows and the new line.
var newFlag = map[string][2]string{
	"cmd/internal/cli/grammar.go": {
		"type Exit struct {",
		"\tPlain Length `name:\"plain\" env:\"LAMEDUCK_PLAIN\" placeholder:\"DUR\" group:\"Exit:\" needs:\"hold\" help:\"a plain new flag\"`",
	},
	"cmd/internal/cli/config.go": {
		"\tcfg.ExitCodes = r.ExitCode.Values",
		"\tcfg.Plain = r.Plain.Value",
	},
	"shim/config.go": {
		"\tExitCodes []ExitMap",
		"\tPlain time.Duration",
	},
}

// carried is a test of package cli that sees the value arrive.
const carried = `package cli

import ("testing"; "time")

func TestNewFlag(t *testing.T) {
	cfg, err := configOf("--plain=3 -d 1 x", "")
	if err != nil || cfg.Plain != 3*time.Second {
		t.Error(cfg.Plain, err)
	}
}
`

// TestNewFlag adds a flag to a copy of the product, in at most three files, a line each. The
// flag is then parsed, carried into shim.Config, checked, suggested, in the help, in the
// environment and known to the linter.
func TestNewFlag(t *testing.T) {
	if len(newFlag) > 3 {
		t.Errorf("a new flag takes %d files", len(newFlag))
	}
	overlay := writeOverlay(t)
	goIn(t, root, "test", overlay, "-count=1", "-run=^(TestNewFlag|TestFlagsOf|TestTags|TestHelpFits|TestCommand)$", "./cmd/internal/cli")
	program, linter := filepath.Join(t.TempDir(), "lameduck"), filepath.Join(t.TempDir(), "lint")
	goIn(t, root, "build", overlay, "-o", program, "./cmd/lameduck")
	goIn(t, ".", "build", overlay, "-o", linter, ".")
	for _, c := range []struct {
		env, args string // words
		says      string
	}{
		{"", "--plain=3 -d 1 --explain -- x", "runs x"},
		{"", "--plain 3 -d 1 -- echo ran", "ran"},
		{"", "--plain=x -d 1 -- x", `lameduck: --plain=x: invalid duration "x": give seconds`},
		{"", "--plain=3 -- x", "lameduck: --plain=3 has no effect without a hold: give --delay or --until too, or leave it out"},
		{"", "--plian=3 -- x", "lameduck: unknown flag --plian: did you mean --plain?"},
		{"", "--plain", "lameduck: --plain needs a value: give --plain=VALUE"},
		{"", "--help-all", "--plain=DUR"},
		{"", "--help-all", "($LAMEDUCK_PLAIN)"},
		{"LAMEDUCK_PLAIN=x", "-d 1 -- x", `lameduck: LAMEDUCK_PLAIN=x: invalid duration "x": give seconds`},
		{"LAMEDUCK_PLIAN=3", "-- true", "lameduck: warning: unknown variable LAMEDUCK_PLIAN: did you mean LAMEDUCK_PLAIN?"},
		{"LAMEDUCK_PLAIN=3", "-d 1 -- env", "PATH="},
	} {
		args := strings.Fields(c.args)
		cmd := exec.Command(program, args...)
		cmd.Env = append(strings.Fields(c.env), "PATH="+os.Getenv("PATH"))
		said, _ := cmd.CombinedOutput()
		if !strings.Contains(string(said), c.says) || strings.Contains(string(said), "LAMEDUCK_PLAIN=3") { // the command does not get the variable
			t.Errorf("%s lameduck %s: says\n%s\nwant %s", c.env, c.args, said, c.says)
		}
	}
	for args, says := range map[string]string{
		"--plain=3, --delay=1, x":    "",
		"--plain=soon, --delay=1, x": `lameduck does not start: --plain=soon: invalid duration "soon"`,
		"--plain=3, x":               "lameduck does not start: --plain=3 has no effect without a hold",
	} {
		cmd := exec.Command(linter, "-")
		cmd.Stdin = strings.NewReader("kind: Pod\nspec:\n  containers:\n  - {image: x, command: [/lameduck, " + args + "]}\n")
		said, err := cmd.CombinedOutput()
		if (err == nil) != (says == "") || !strings.Contains(string(said), says) {
			t.Errorf("%s: %v, says %q; want %q", args, err, said, says)
		}
	}
}

// writeOverlay returns the flag by which the go command sees the product with the new flag.
func writeOverlay(t *testing.T) string {
	t.Helper()
	dir, replace := t.TempDir(), map[string]string{}
	write := func(path, text string) {
		absolute, err := filepath.Abs(filepath.Join(root, path))
		copied := filepath.Join(dir, strings.ReplaceAll(path, "/", "-"))
		if err == nil {
			err = os.WriteFile(copied, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		replace[absolute] = copied
	}
	for path, lines := range newFlag {
		text, err := os.ReadFile(filepath.Join(root, path))
		before, after, found := strings.Cut(string(text), "\n"+lines[0]+"\n")
		if err != nil || !found {
			t.Fatalf("%s has no line %q: %v", path, lines[0], err)
		}
		write(path, before+"\n"+lines[0]+"\n"+lines[1]+"\n"+after)
	}
	write("cmd/internal/cli/newflag_test.go", carried)
	text, err := json.Marshal(map[string]any{"Replace": replace})
	path := filepath.Join(dir, "overlay.json")
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return "-overlay=" + path
}

func goIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
