package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestTerminationLogStop: at every stage of a stop the file has one line about the stop,
// in the format of --log-format, after the command's own text.
func TestTerminationLogStop(t *testing.T) {
	for name, c := range map[string]struct {
		flags              []string
		begin, sent, ended string // text in the line after each stage
	}{
		"text": {nil, "TERM: holding 1 s", "TERM: held 1.0 s (elapsed), sent TERM\n", ", exited 7 at +"},
		"json": {[]string{"--log-format=json"}, `"ended":null,`, `"ended":"elapsed"`, `"exit_code":7,`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
			testutil.WriteFile(t, path, "the command's\n")
			b := boot(t, nil, append(append(c.flags, "-d", "1", "--termination-log="+path, "--"), helperCommand("catch")...)...)
			b.out.wait(t, "ready")
			wantLine := func(what, part string) {
				t.Helper()
				var line string
				testutil.Eventually(t, "the file has "+what, func() bool {
					text, _ := os.ReadFile(path)
					first, rest, _ := strings.Cut(string(text), "\n")
					line = rest
					return first == "the command's" && strings.Contains(line, part) && strings.Count(line, "\n") == 1
				})
				if name == "json" && !json.Valid([]byte(line)) {
					t.Errorf("invalid JSON: %s", line)
				}
			}
			b.signal(sig.TERM)
			wantLine("the line at the trigger", c.begin)
			b.out.wait(t, "got TERM")
			wantLine("the signal sent", c.sent)
			b.wantPromptExit()
			wantLine("the command's exit", c.ended)
		})
	}
}

// TestTerminationLogFails: if the command fails by itself, lameduck restores the file. A
// path that cannot be written is an error at the start, and "none" switches the log off.
func TestTerminationLogFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	for _, before := range []string{"", "boom", "boom\n"} {
		for _, end := range []string{"exit 3", "killed KILL"} {
			testutil.WriteFile(t, path, before)
			b := boot(t, nil, append([]string{"-d", "10", "--grace-period=30", "--termination-log=" + path, "--"}, helperCommand("catch")...)...)
			b.out.wait(t, "ready")
			b.signal(sig.TERM)
			b.err.wait(t, "holding")
			testutil.Eventually(t, "the file has the line at the trigger", func() bool { return strings.Contains(string(testutil.Must(os.ReadFile(path))), "holding") })
			b.sendLine(end)
			b.waitExit()
			if now := string(testutil.Must(os.ReadFile(path))); now != before {
				t.Errorf("%s: the file is %q, want %q as before the stop", end, now, before)
			}
		}
	}
	b := boot(t, nil, "--termination-log=/proc", "-d", "1", "--", "echo", "started")
	b.wantExit(125)
	b.wantOneLine("--termination-log=/proc (LAMEDUCK_TERMINATION_LOG): is a directory: give a file, or none")
	testutil.WriteFile(t, path, "")
	b = boot(t, nil, append([]string{"-d", "1", "--termination-log=none", "--"}, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	b.wantStop()
	_, err := os.Lstat("none")
	if stderr := b.err.all(); len(stderr) != 2 || err == nil {
		t.Errorf("stderr: %v, want two lines; file \"none\" exists: %v, want none", stderr, err == nil)
	}
}

// TestTerminationLogGoes: when the file can no longer be written, lameduck warns once,
// and the stop goes on.
func TestTerminationLogGoes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b := boot(t, nil, append([]string{"-d", "1", "--termination-log=" + dir + "/log", "--"}, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	b.wantStop()
	took := time.Since(start)
	b.wantWarning("warning: cannot write the termination log: no such file or directory")
	if took > 5*time.Second {
		t.Errorf("the stop took %v, want less than 5 s", took)
	}
}

// TestPlantedLinks: a link that another user planted in a shared directory keeps the
// command from being started, and the target of the link is unchanged.
func TestPlantedLinks(t *testing.T) {
	for flag, message := range map[string]string{
		"--alive-file":      "cannot use a symbolic link: give the path of a file",
		"--termination-log": "symbolic link in a directory that others may write to: give a file, or none",
	} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			dir, home := t.TempDir(), t.TempDir()
			victim, path := home+"/victim", dir+"/planted"
			testutil.WriteFile(t, victim, "")
			if err := errors.Join(os.Chmod(dir, 0o777), os.Symlink(victim, path)); err != nil {
				t.Fatal(err)
			}
			if err := os.Lchown(path, 65534, 65534); err != nil {
				t.Logf("planted by the same user: %v", err)
			}
			b := boot(t, nil, flag+"="+path, "-d", "1", "--", "echo", "started")
			b.wantExit(125)
			variable := "LAMEDUCK_" + strings.ToUpper(strings.ReplaceAll(flag[2:], "-", "_"))
			b.wantOneLine("lameduck: "+flag+"="+path+" ("+variable+"): ", ": "+message)
			if stderr := fmt.Sprint(b.err.all()); !strings.HasSuffix(stderr, message+"]") {
				t.Errorf("stderr: %s, want %q at the end", stderr, message)
			}
			if text := string(testutil.Must(os.ReadFile(victim))); text != "" {
				t.Errorf("the link's target has become %q", text)
			}
		})
	}
}

// TestTerminationLogStderr: /dev/stderr is a symbolic link that root has made, and is
// accepted if standard error is a regular file.
func TestTerminationLogStderr(t *testing.T) {
	t.Parallel()
	if at := testutil.Must(os.Stat("/dev")).Sys().(*syscall.Stat_t); at.Uid != 0 || at.Mode&0o022 != 0 {
		t.Skip("others may write to /dev")
	}
	path := filepath.Join(t.TempDir(), "stderr")
	b := boot(t, nil, append([]string{"--termination-log=/dev/stderr", "-d", "1", "--", "sh", "-c", `exec "$@"`, "sh"}, helperCommand("catch")...)...)
	b.waitExit() // standard error is a pipe here
	b.wantOneLine("--termination-log=/dev/stderr (LAMEDUCK_TERMINATION_LOG): not a regular file: give a file, or none")
	b = newProgram(t, nil, syscall.SysProcAttr{}, "sh", "-c", `exec "$0" --termination-log=/dev/stderr -d 0.2 -- sh -c 'kill -TERM $PPID; sleep 9' 2>"$1"`, binary, path)
	b.run()
	b.waitExit()
	if text := string(testutil.Must(os.ReadFile(path))); strings.Count(text, "TERM: held 0.2 s (elapsed)") != 2 {
		t.Errorf("the file is %q, want the report twice: on stderr and in the log", text)
	}
}
