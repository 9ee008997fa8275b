package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestTerminationLogStop: the file has the news of a stop at each of its stages, in
// the form that was asked for, after what the command has written.
func TestTerminationLogStop(t *testing.T) {
	for name, c := range map[string]struct {
		flags             []string
		begin, sent, over string
	}{
		"text": {nil, "TERM: holding 1 s", "TERM: held 1.0 s (elapsed); sent TERM at +1.0 s\n", "; the command exited 7 at +"},
		"json": {[]string{"--log-format=json"}, `"ended":null,`, `"ended":"elapsed"`, `"exit_code":7,`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
			testutil.WriteFile(t, path, "the command's\n")
			b := boot(t, nil, append(append(c.flags, "-d", "1", "--termination-log="+path, "--"), helperCommand("catch")...)...)
			b.out.wait(t, "ready")
			has := func(what, part string) {
				t.Helper()
				var rest string
				testutil.Eventually(t, what, func() bool {
					text, _ := os.ReadFile(path)
					first, line, _ := strings.Cut(string(text), "\n")
					rest = line
					return first == "the command's" && strings.Contains(line, part) && strings.Count(line, "\n") == 1
				})
				if name == "json" && !json.Valid([]byte(rest)) {
					t.Errorf("not valid: %s", rest)
				}
			}
			b.signal(sig.TERM)
			has("the line at the trigger", c.begin)
			b.out.wait(t, "got TERM")
			has("what was sent", c.sent)
			b.wantPromptExit()
			has("the end", c.over)
		})
	}
}

// TestTerminationLogFails: a command that fails by itself has the file for itself;
// a path that cannot be is an error at start; none is none.
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
			testutil.Eventually(t, "the line at the trigger", func() bool { return strings.Contains(string(testutil.Must(os.ReadFile(path))), "holding") })
			b.sendLine(end)
			b.waitExit()
			if now := string(testutil.Must(os.ReadFile(path))); now != before {
				t.Errorf("%s: the file was %q and is %q", end, before, now)
			}
		}
	}
	b := boot(t, nil, "--termination-log=/proc", "-d", "1", "--", "echo", "started")
	b.wantExit(125)
	if said := b.err.all(); len(said) != 1 || len(b.out.all()) > 0 || !strings.Contains(said[0].text, "--termination-log=/proc: is a directory: give a file, or none") {
		t.Errorf("said %v, %v", said, b.out.all())
	}
	testutil.WriteFile(t, path, "")
	b = boot(t, nil, append([]string{"-d", "1", "--termination-log=none", "--"}, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	b.wantStop()
	_, err := os.Lstat("none")
	if said := b.err.all(); len(said) != 2 || err == nil {
		t.Errorf("said %v", said)
	}
}

// TestTerminationLogGoes: one that can no longer be written is one warning, and the
// stop goes on.
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
	var warned int
	for _, line := range b.err.all() {
		warned += strings.Count(line.text, "warning: cannot write the termination log: no such file or directory")
	}
	if warned != 1 || time.Since(start) > 5*time.Second {
		t.Errorf("said %v", b.err.all())
	}
}

// TestPlantedLinks: another user's link in a directory that everybody may write to
// keeps the command from being started, and the file at the other end stays.
func TestPlantedLinks(t *testing.T) {
	for flag, says := range map[string]string{
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
			if said := b.err.all(); len(said) != 1 || len(b.out.all()) > 0 || said[0].text != "lameduck: "+flag+"="+path+": "+says {
				t.Errorf("said %v, %v", said, b.out.all())
			}
			if text := string(testutil.Must(os.ReadFile(victim))); text != "" {
				t.Errorf("the victim has become %q", text)
			}
		})
	}
}

// TestTerminationLogStderr: /dev/stderr is a link that root has made, to a file here.
func TestTerminationLogStderr(t *testing.T) {
	t.Parallel()
	if at := testutil.Must(os.Stat("/dev")).Sys().(*syscall.Stat_t); at.Uid != 0 || at.Mode&0o022 != 0 {
		t.Skip("others may write to /dev")
	}
	path := filepath.Join(t.TempDir(), "stderr")
	b := boot(t, nil, append([]string{"--termination-log=/dev/stderr", "-d", "1", "--", "sh", "-c", `exec "$@"`, "sh"}, helperCommand("catch")...)...)
	b.waitExit() // a pipe is refused, as ever
	if said := b.err.all(); len(said) != 1 || !strings.Contains(said[0].text, "--termination-log=/dev/stderr: not a regular file: give a file, or none") {
		t.Errorf("said %v", said)
	}
	b = newProgram(t, nil, syscall.SysProcAttr{}, "sh", "-c", `exec "$0" --termination-log=/dev/stderr -d 0.2 -- sh -c 'kill -TERM $PPID; sleep 9' 2>"$1"`, binary, path)
	b.run()
	b.waitExit()
	if text := string(testutil.Must(os.ReadFile(path))); strings.Count(text, "TERM: held 0.2 s (elapsed)") != 2 {
		t.Errorf("the file is %q", text)
	}
}
