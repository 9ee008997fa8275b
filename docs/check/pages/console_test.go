package pages

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// commands checks indented lines: a console, lines of a report, or commands without output.
func commands(t *testing.T, text string) {
	if strings.HasPrefix(text, "$ ") {
		console(t, text)
		return
	}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, " #")
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "lameduck:":
			said, ofWatch := strings.CutPrefix(rest, "watch: ")
			known := read("testdata/report.txt")
			if ofWatch {
				known = watched(t)
			}
			isSaid(t, known, said)
		case "make", ".ci/run":
			parts := read(map[string]string{"make": "Makefile", ".ci/run": ".ci/run"}[name])
			for part := range strings.FieldsSeq(rest) {
				if !regexp.MustCompile(`(?m)^` + part + `(:|\(\) \{)`).MatchString(parts) {
					t.Errorf("%s has no %s", name, part)
				}
			}
		case "lameduck":
			explain(t, rest)
		}
	}
}

// explain gives the words of a command line to lameduck --explain, which must not warn but
// of an assumed grace period. An ellipsis at the end is a command.
func explain(t *testing.T, words string) {
	t.Helper()
	if strings.HasPrefix(words, "-") {
		words = "--explain " + strings.Replace(words, "…", "-- myserver", 1)
	}
	var stderr strings.Builder
	cmd := exec.Command("sh", "-c", "lameduck "+words)
	cmd.Stderr = &stderr
	err := cmd.Run()
	warned := regexp.MustCompile(`(?m)^.*the grace period is assumed.*\n`).ReplaceAllString(stderr.String(), "")
	if err != nil || warned != "" {
		t.Errorf("lameduck %s: %v\n%s", words, err, &stderr)
	}
}

// figureless removes what differs between two reports: signals, figures, the sparkline.
func figureless(text string) string {
	text = regexp.MustCompile(`\b(TERM|USR1|QUIT|INT)\b`).ReplaceAllString(text, "SIG")
	text = regexp.MustCompile(`\d+(\.\d+)?`).ReplaceAllString(text, "N")
	return regexp.MustCompile(` [▁▂▃▄▅▆▇█]+`).ReplaceAllString(text, "")
}

// watched returns what lameduck watch said about two stops: the log of watch.sh, and the messages
// in it.
func watched(t *testing.T) string {
	t.Helper()
	watchOnce.Do(func() {
		script := "bash ./watch.sh; cat watch.log; jq -r '.message // empty' watch.log\n"
		watchLog = session(t, script, "exec sh script", nil)
	})
	if watchLog == "" {
		t.Skip("no stop was watched")
	}
	return watchLog
}

var (
	watchOnce sync.Once
	watchLog  string
)

// isSaid reports an error where text has a phrase that known lacks.
func isSaid(t *testing.T, known, text string) {
	t.Helper()
	known = figureless(known)
	for _, phrase := range regexp.MustCompile(`; |, |: |\n`).Split(figureless(text), -1) {
		if !strings.Contains(known, phrase) {
			t.Errorf("nothing says %q", phrase)
		}
	}
}

// TestQuotes: what a table quotes at the beginning of a row is a phrase of a report, or of a
// warning in the source.
func TestQuotes(t *testing.T) {
	known, quotes := read("testdata/report.txt"), 0
	for _, dir := range []string{"shim", "shim/internal/plan", "cmd/lameduck"} {
		sources, _ := filepath.Glob(root + "/" + dir + "/*.go")
		for _, path := range sources {
			known += read(dir + "/" + filepath.Base(path))
		}
	}
	for _, p := range pages(t) {
		for _, cell := range regexp.MustCompile(`(?m)^\| "[^|]*`).FindAllString(p.text, -1) {
			for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(cell, -1) {
				quotes++
				isSaid(t, known, m[1])
			}
		}
	}
	if quotes < 10 {
		t.Errorf("only %d quotes", quotes)
	}
}

// patience bounds a session.
const patience = 40 * time.Second

// console types the lines after "$ " or "> " and compares the output with the other lines, where
// "..." stands for any text. Lines for a container engine are not typed. With kubectl exec
// the shell runs beside a server under lameduck, as in a pod.
func console(t *testing.T, text string) {
	script := ". ./session.sh\n"
	var want []string
	for line := range strings.Lines(text) {
		prompt := regexp.MustCompile(`^[$>] `).FindString(line)
		command, typed := line[len(prompt):], prompt != ""
		switch engine := regexp.MustCompile(`^(docker|podman) `).MatchString(command); {
		case !typed:
			want = append(want, strings.TrimSuffix(line, "\n"))
		case !engine:
			script += command
		}
		if strings.HasSuffix(command, "&\n") {
			script += "served\n"
		}
	}
	inside := "exec sh script"
	pod := strings.Contains(text, "$ kubectl exec")
	if pod {
		inside = "exec lameduck --until=quiet --grace-period=60 -- sh -c 'sh script & exec myserver :8080 >/dev/null'"
	}
	for _, log := range []string{"stops", "watch"} {
		if strings.Contains(text, log+".log") {
			script = "bash ./" + log + ".sh\n" + script
		}
	}
	got := session(t, script, inside, func(got string) bool { return pod && matches(want, got) })
	if !matches(want, got) {
		t.Errorf("the page has\n%s\nand the console\n%s", strings.Join(want, "\n"), got)
	}
}

// session runs a script in namespaces of its own and returns the output until enough, if it is not
// nil, accepts it, or to the end.
func session(t *testing.T, script, inside string, enough func(string) bool) (got string) {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{"testdata", root + "/docs/examples/kubernetes/seccomp"} {
		if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "script"), []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	flags := strings.Fields("--user --map-root-user --pid --fork --kill-child --mount-proc --net")
	if out, err := exec.Command("unshare", append(flags, "true")...).CombinedOutput(); err != nil {
		t.Skipf("no namespaces: %v: %s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", append(flags, "sh", "-c", inside)...)
	cmd.Dir = dir
	out := must(cmd.StdoutPipe())
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); (enough == nil || !enough(got)) && lines.Scan(); {
		got += lines.Text() + "\n"
	}
	cancel()
	cmd.Wait()
	return got
}

// matches compares lines. "..." alone stands for any number of lines, in a line for any
// text. The time of day, and measured times, which have tenths, may differ.
func matches(want []string, got string) bool {
	timeless := func(text string) string {
		text = regexp.MustCompile(`\d\d:\d\d:\d\d`).ReplaceAllString(text, "TIME")
		return regexp.MustCompile(`\d+\.\d s\b`).ReplaceAllString(text, "MEASURED")
	}
	pattern := ""
	for _, line := range want {
		if line == "..." {
			pattern += `(.*\n)*`
			continue
		}
		pattern += strings.ReplaceAll(regexp.QuoteMeta(timeless(line)), `\.\.\.`, ".*") + `\n`
	}
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(timeless(got))
}
