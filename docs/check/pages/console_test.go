package pages

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience bounds every wait for a command.
const patience = 20 * time.Second

// commands checks lines to type without output, lines of a report, or both as on a
// console.
func commands(t *testing.T, text string) {
	if strings.HasPrefix(text, "$ ") {
		console(t, text)
		return
	}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
		if strings.HasPrefix(line, "lameduck: ") {
			isReport(t, line)
			continue
		}
		words := fields(t, line)
		if kubectl(t, words) {
			continue
		}
		switch words[0] {
		case "make":
			isTarget(t, words[1:])
		case ".ci/run":
			isPart(t, words[1:])
		default:
			typed(t, words)
		}
	}
}

// fields splits a line as a shell would. An ellipsis at its end is a program.
func fields(t *testing.T, line string) (words []string) {
	t.Helper()
	if strings.HasSuffix(line, "…") {
		line = strings.TrimSuffix(line, "…") + "-- myserver"
	}
	out, err := exec.Command("sh", "-c", "printf '%s\\n' "+line).Output()
	if err != nil {
		t.Fatalf("cannot split %q: %v", line, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// typed checks a command without running the command.
func typed(t *testing.T, words []string) {
	t.Helper()
	if installs(t, words) {
		return
	}
	var c call
	for len(words) > 0 && strings.Contains(words[0], "=") && !strings.HasPrefix(words[0], "-") {
		c.env, words = append(c.env, words[0]), words[1:]
	}
	switch {
	case len(words) > 1 && (words[0] == "docker" || words[0] == "podman"):
		container(t, words)
		return
	case len(words) > 3 && words[0] == "kubectl" && words[1] == "exec" && slices.Contains(words, "--"):
		words = words[slices.Index(words, "--")+1:]
	}
	c.argv = words
	if len(c.env) == 0 && !strings.HasSuffix(words[0], "lameduck") && !slices.Contains(dropins, words[0]) {
		t.Errorf("no call of lameduck in %q", words)
	}
	c.check(t)
}

// container checks docker run and podman run. The other commands call no lameduck.
func container(t *testing.T, words []string) {
	t.Helper()
	if slices.Contains([]string{"stop", "kill", "build", "inspect"}, words[1]) {
		return
	}
	if words[1] != "run" {
		t.Fatalf("no rule for %q", words)
	}
	var c call
	words = words[2:]
	for ; len(words) > 0 && strings.HasPrefix(words[0], "-"); words = words[1:] {
		name, value, joined := strings.Cut(words[0], "=")
		if !joined && slices.Contains([]string{"-e", "--env", "--name", "-p", "-v", "--entrypoint", "--stop-timeout", "--init-path", "--user"}, name) {
			words = words[1:]
			value = words[0]
		}
		switch name {
		case "-e", "--env":
			c.env = append(c.env, value)
		case "--stop-timeout":
			c.grace = value
		case "--entrypoint":
			c.argv = []string{value}
		}
	}
	if len(words) == 0 {
		t.Fatal("no image")
	}
	c.runs(words[0])
	c.argv = append(c.argv, words[1:]...)
	c.check(t)
}

// isTarget reports an error where the Makefile does not have all of words.
func isTarget(t *testing.T, words []string) {
	t.Helper()
	makefile, err := os.ReadFile(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range words {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(word) + `:`).Match(makefile) {
			t.Errorf("the Makefile has no %s", word)
		}
	}
}

// isPart reports an error where .ci/run does not have all of words.
func isPart(t *testing.T, words []string) {
	t.Helper()
	script, err := os.ReadFile(root + "/.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range words {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(word) + `\(\) \{`).Match(script) {
			t.Errorf(".ci/run has no part %s", word)
		}
	}
}

// phrase separates the phrases in the lines of a report.
var phrase = regexp.MustCompile(`; |, |: `)

// isReport reports an error where line has a phrase that no golden report has. Figures
// and signals may differ.
func isReport(t *testing.T, line string) {
	t.Helper()
	golden, err := os.ReadFile(root + "/testdata/report.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := phrase.Split(strings.ReplaceAll(figureless(string(golden)), "\n", "; "), -1)
	for _, text := range phrase.Split(figureless(strings.TrimPrefix(line, "lameduck: ")), -1) {
		if !slices.Contains(known, text) {
			t.Errorf("no report says %q", text)
		}
	}
}

func figureless(text string) string {
	text = regexp.MustCompile(`\b(TERM|USR1|QUIT|INT)\b`).ReplaceAllString(text, "SIG")
	text = regexp.MustCompile(`\d+(\.\d+)?`).ReplaceAllString(text, "N")
	return regexp.MustCompile(` [▁▂▃▄▅▆▇█]+`).ReplaceAllString(text, "")
}

// console types the lines after "$ " and compares the output with the other lines, where
// "..." stands for any text.
func console(t *testing.T, text string) {
	var want []string
	var session *shell
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		command, typedIn := strings.CutPrefix(line, "$ ")
		if !typedIn {
			want = append(want, line)
			continue
		}
		if name, _, _ := strings.Cut(command, " "); name == "docker" || name == "podman" {
			typed(t, fields(t, command))
			continue
		}
		if session == nil {
			session = start(t, strings.Contains(text, "kubectl exec"))
			if strings.Contains(text, "stops.log") {
				needs(t, "jq")
				session.has("stops.log", stopsLog())
			}
		}
		session.do(command)
	}
	if session == nil {
		return
	}
	if !session.prints(want) {
		t.Errorf("the page has\n%s\nand the console\n%s", strings.Join(want, "\n"), strings.Join(session.got, "\n"))
	}
}

// matches compares lines. "..." alone stands for any number of lines, in a line for any
// text.
func matches(want, got []string) bool {
	pattern := ""
	for _, line := range want {
		if line == "..." {
			pattern += `(.*\n)*`
			continue
		}
		pattern += strings.ReplaceAll(regexp.QuoteMeta(timeless(line)), `\.\.\.`, ".*") + `\n`
	}
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(timeless(strings.Join(got, "\n") + "\n"))
}

// timeless replaces the time of day, and measured times, which have tenths.
func timeless(text string) string {
	text = regexp.MustCompile(`\d\d:\d\d:\d\d`).ReplaceAllString(text, "TIME")
	return regexp.MustCompile(`\d+\.\d s\b`).ReplaceAllString(text, "MEASURED")
}
