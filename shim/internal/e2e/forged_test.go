package e2e

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/lameduck-init/lameduck/shim"
	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// Any process chooses the paths of its Unix sockets. This path clears the screen of a
// terminal and forges a line.

const forgery = "\x1b[2J\u009b2J\nlameduck: forged \xff"

// forgedPath returns a path with the forgery in it, short enough for sun_path of unix(7) and
// for a line of the report.
func forgedPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "f")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir + "/" + forgery
}

// wantPrintable fails where a line has control characters or is forged.
func wantPrintable(t *testing.T, lines []outputLine) {
	t.Helper()
	for _, line := range lines {
		if line.text != quote.Line(line.text) || strings.HasPrefix(strings.TrimPrefix(line.text, "hook: "), "lameduck: forged") {
			t.Errorf("line %q", line.text)
		}
	}
}

// TestForgedView: a view, plain or in JSON, is one line, and shows the path quoted.
func TestForgedView(t *testing.T) {
	for flags, want := range map[string]func(path string) string{
		"": func(path string) string {
			return " ports " + strconv.Quote(path) + " (not seen), " + strconv.Quote("@"+path) + " (not seen); 0 open"
		},
		" --json": func(string) string { return `"unix":["` },
	} {
		t.Run("watch"+flags, func(t *testing.T) {
			h := startHookHost(t, "none", nil)
			path := forgedPath(t)
			for _, name := range []string{path, "@" + path} {
				h.sendLine("socket " + strings.ReplaceAll(strconv.QuoteToASCII(name), " ", `\x20`))
			}
			h.out.waitUntil(t, "both sockets", func() bool {
				return strings.Count(fmt.Sprint(h.out.collected), "socket listens") == 2
			})
			h.sendLine("watch" + flags)
			views := h.waitView(want(path))
			wantPrintable(t, h.out.all())
			if flags != "" {
				var view shim.View
				err := json.Unmarshal([]byte(views[len(views)-1]), &view)
				if want := strings.ReplaceAll(path, "\xff", "\ufffd"); err != nil || !slices.Equal(view.Unix, []string{want, "@" + want}) {
					t.Errorf("the paths are %q, want %q: %v", view.Unix, want, err)
				}
			}
			h.sendLine("send TERM")
			h.out.wait(t, "hook exited 0")
			h.shutDown()
		})
	}
}

// TestForgedTerminal: on a terminal all escape sequences are lameduck's own. The test does not
// run beside others, whose ports would take the paths' place in the line.
func TestForgedTerminal(t *testing.T) {
	netns.Need(t)
	path := forgedPath(t)
	for _, name := range []string{path, "@" + path} {
		listener, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
	}
	s := startOnTerminal(t, false, binary, "watch")
	s.waitFor("ports ")
	s.waitFor(strconv.Quote(path) + " (not seen)")
	s.typeText(ctrlC)
	s.wantExit(0)
	if s.count("\x1b[2J") != 0 || s.count("\nlameduck: forged") != 0 {
		s.t.Errorf("shown: %q", s.shown.String())
	}
}

// TestForgedReport: the report quotes a --wait-gone path, on standard error and in the
// termination log.
func TestForgedReport(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			path := forgedPath(t)
			listener, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			log := t.TempDir() + "/log"
			flags := []string{"--delay=0.2", "--max-delay=0.5", "--grace-period=30", "--log-level=debug",
				"--log-format=" + format, "--wait-gone=" + path, "--on-stop=/no/such/" + strings.ReplaceAll(forgery, "\n", `"`+"\n"+`"`), "--termination-log=" + log, "--"}
			b := boot(t, []string{"LAMEDUCK_\x1b[2J\nlameduck: forged=1"}, append(flags, helperCommand("catch")...)...)
			b.out.wait(t, "ready")
			b.signal(sig.TERM)
			b.out.wait(t, "got TERM")
			b.sendLine("exit 0")
			b.wantExit(0)
			wantPrintable(t, b.err.all())
			want := strconv.Quote(path) + ", which existed until the end"
			text := strings.TrimSuffix(string(testutil.Must(os.ReadFile(log))), "\n")
			for line := range strings.SplitSeq(text, "\n") {
				if line != quote.Line(line) || format != "json" && !isReport.MatchString(line) {
					t.Errorf("the termination log is %q", text)
				}
			}
			message := text
			if format == "json" {
				var report struct {
					Message     string
					ProlongedBy string `json:"prolonged_by"`
				}
				if err := json.Unmarshal([]byte(text), &report); err != nil || report.ProlongedBy != want {
					t.Errorf("prolonged by %q, want %q: %v", report.ProlongedBy, want, err)
				}
				message = report.Message
			}
			if !strings.Contains(message, want) {
				t.Errorf("the report is %q, want %q in it", message, want)
			}
		})
	}
}

// TestForgedExplain: a shell parses the command line that --explain prints into the same words.
func TestForgedExplain(t *testing.T) {
	t.Parallel()
	needs(t, "bash")
	b := newProgram(t, nil, syscall.SysProcAttr{}, binary, "--explain", "--alive-file=/run/"+forgery, "--wait-gone=/run/"+forgery, "--on-stop=/bin/echo '"+forgery+"'", "--delay=1", "--grace-period=30",
		"--", "printf", `%s`, "it's\t"+forgery)
	b.run()
	b.wantExit(0)
	lines := b.out.all()
	wantPrintable(t, lines)
	typed, found := strings.CutPrefix(lines[0].text, "runs ")
	if !found || len(lines) < 5 {
		t.Fatalf("--explain prints %q", lines)
	}
	shell := newProgram(t, nil, syscall.SysProcAttr{}, "bash", "-c", typed+" | od -An -v -tx1 | tr -d ' \\n'; echo")
	shell.run()
	shell.wantExit(0)
	if got, want := shell.out.all()[0].text, hex.EncodeToString([]byte("it's\t"+forgery)); got != want {
		t.Errorf("a shell parses %s as %s, want %s", typed, got, want)
	}
}
