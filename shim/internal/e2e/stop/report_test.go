package stop_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestReport: every line of a stop is a JSON object, and the last line has all values. At
// each stage the termination log has the report so far, after the command's own text.
func TestReport(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	testutil.WriteFile(t, log, "the command's\n")
	logged := func(what string, ok func(r box.Report) bool) {
		t.Helper()
		testutil.Eventually(t, "the termination log has "+what, func() bool {
			lines := box.ReadLines(log)
			return len(lines) == 2 && lines[0] == "the command's" && json.Valid([]byte(lines[1])) &&
				ok(box.ParseReport(lines[1]))
		})
	}
	b := box.Setup{Network: box.NewNetwork(t)}.Catch(t,
		"--delay=2 --grace-period=30 --log-level=debug --termination-log="+log, "[::]:0")
	b.Stop()
	b.Err.Wait("sample busy") // later connections are new
	logged("the trigger", func(r box.Report) bool { return r.Trigger == "TERM" && r.Ended == "" })
	b.ShortConn("127.0.0.1")
	kept := b.Dial("::1")
	kept.Ask("hello")
	b.Out.Wait("got TERM")
	logged("the signal", func(r box.Report) bool { return r.Ended == "elapsed" && r.Signals() == "TERM" })
	b.Exit()
	logged("the exit", func(r box.Report) bool { return r.ExitCode == 7 })
	for _, line := range b.Err.All() {
		if r := box.ParseReport(line.Text); r.Schema != 1 || r.Level == "" || r.Message == "" {
			t.Errorf("line %s", line)
		}
	}
	r := b.Report()
	if r.HeldMS < 2000 || r.FloorMS != 2000 || r.CeilingMS != 2000 || r.Accepted != 2 || r.Open != 1 || r.InFlight != 0 ||
		r.Observer != "sock_diag" || r.Scope == "" || r.LastNewMS < 0 || r.LastByteMS < 0 || r.Sent[0].AtMS < 2000 ||
		r.GraceUsedMS < r.HeldMS || r.GraceAssumed {
		t.Errorf("the report is %+v", r)
	}
}

// TestReportOvertime: the line before the end of the grace period counts the requests in
// flight at that time.
func TestReportOvertime(t *testing.T) {
	t.Parallel()
	b := box.Setup{Network: box.NewNetwork(t)}.Catch(t, "--delay=1 --grace-period=4", "127.0.0.1:0")
	c := b.Dial("127.0.0.1")
	c.Ask("hello")
	b.Stop()
	b.Out.Wait("got TERM")
	fmt.Fprintln(c, "wait")
	b.Err.Wait("still runs")
	if r := b.Report(); !strings.Contains(r.Message, ", 1 in flight") || r.ExitCode != -1 || r.GraceUsedMS < 3000 ||
		r.Signals() != "TERM" {
		t.Errorf("report %+v, want one request in flight after 3 s", r)
	}
	b.Exit()
}

// TestReportShell: the report says that a shell does not pass TERM on.
func TestReportShell(t *testing.T) {
	t.Parallel()
	b := box.Boot(t, "--delay=0.5 --grace-period=30", "sh", "-c", "echo ready; sleep 1000; true")
	b.Ready()
	b.Child()
	b.Stop()
	b.WantExit(143)
	if r := b.Report(); !strings.Contains(r.Suggestion, "--group") {
		t.Errorf("report %+v, want advice about the shell", r)
	}
}

// TestTerminationLogFails: if the command fails by itself, lameduck restores the file. When
// the file can no longer be written, lameduck warns once, and the stop goes on.
func TestTerminationLogFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, before := range []string{"", "boom", "boom\n"} {
		path := dir + "/log"
		testutil.WriteFile(t, path, before)
		b := box.Catch(t, "-d 10 --grace-period=30 --termination-log="+path)
		b.Trigger()
		testutil.Eventually(t, "the file has the line at the trigger",
			func() bool { return strings.Contains(string(testutil.Must(os.ReadFile(path))), "holding") })
		b.Send("killed KILL")
		b.WantExit(137)
		if now := string(testutil.Must(os.ReadFile(path))); now != before {
			t.Errorf("the file is %q, want %q as before the stop", now, before)
		}
	}
	os.Mkdir(dir+"/gone", 0o755)
	b := box.Catch(t, "-d 0.5 --termination-log="+dir+"/gone/log")
	os.RemoveAll(dir + "/gone")
	b.WantHold(b.Stop(), 0, "elapsed")
	b.WantWarning("cannot write the termination log: no such file or directory")
}

// TestTerminationLogNone: "none" switches the log off, and /dev/stdout, a symbolic link that
// root has made, is accepted if standard output is a regular file.
func TestTerminationLogNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for log, reports := range map[string]int{"none": 0, "/dev/stdout": 1} {
		path := dir + "/stdout"
		script := `cd "$2"; exec "$0" --termination-log=` + log + ` -d 0.2 -- sh -c 'kill -TERM $PPID; exec sleep 9' >"$1"`
		box.Setup{Outside: true}.Start(t, "sh", "-c", script, box.Binary, path, dir).WantExit(143)
		n := 0
		for _, line := range box.ReadLines(path) {
			if box.ParseReport(line).Ended != "" {
				n++
			}
		}
		if n != reports {
			t.Errorf("%s: %d reports in %q, want %d", log, n, box.ReadLines(path), reports)
		}
	}
	absent(t, dir+"/none")
}

// TestReportForged: a path that forges a line and escape sequences is quoted in every line
// and in the termination log, in text and in JSON.
func TestReportForged(t *testing.T) {
	const forgery = "\x1b[2J\u009b2J\nlameduck: forged \xff"
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			dir := testutil.Must(os.MkdirTemp("", "f")) // short enough for sun_path of unix(7)
			t.Cleanup(func() { os.RemoveAll(dir) })
			testutil.WriteFile(t, dir+"/"+forgery, "")
			log := dir + "/log"
			b := box.Setup{Env: []string{"LAMEDUCK_LOG_FORMAT=" + format, "LAMEDUCK_\x1b[2J\nlameduck: forged=1",
				"LAMEDUCK_ON_STOP='/no/such/" + forgery + "'"}}.
				Catch(t,
					"--max-delay=0.5 --grace-period=30 --log-level=debug --wait-gone='"+dir+"/"+forgery+"' --termination-log="+log)
			b.Signal(sig.TERM)
			b.Out.Wait("got TERM")
			b.Exit()
			lines := append(b.Err.Texts(), box.ReadLines(log)...)
			for _, line := range lines {
				if forged(line) || format == "json" && !json.Valid([]byte(line)) {
					t.Errorf("line %q", line)
				}
			}
			if text := strings.Join(lines, "\n"); strings.Count(text, `lameduck: forged`) < 4 {
				t.Errorf("the paths are missing in\n%s", text)
			}
		})
	}
}

// forged reports whether a line begins like one of lameduck's although it is text from
// outside, or has control characters.
func forged(line string) bool {
	return line != quote.Line(line) || strings.HasPrefix(line, "lameduck: forged")
}
