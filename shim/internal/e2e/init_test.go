package e2e

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
)

// TestScriptsReal plays the golden scripts marked "real" on the built binary.
func TestScriptsReal(t *testing.T) {
	scripts, err := script.Load(testutil.Path("testdata/stop/*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		if s.Real {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				playReal(t, s)
			})
		}
	}
}

func playReal(t *testing.T, s *script.Script) {
	b := boot(t, s.Env, append(append(s.Flags, "--"), helperCommand("catch")...)...)
	ready := b.out.wait(t, "ready").at
	for _, e := range s.Events {
		if e.Text == "killed KILL" && slices.ContainsFunc(s.Actions, func(a script.Step) bool { return a.Text == "sends KILL" }) {
			continue // lameduck sends the KILL
		}
		time.Sleep(time.Until(ready.Add(e.At))) // a script says at which times events come
		if name, err := sig.Parse(e.Text); err == nil {
			b.signal(name)
		} else {
			b.sendLine(e.Text)
		}
	}
	code := b.waitExit()
	end := time.Now()
	got := map[string][]outputLine{"leaves": {{end, fmt.Sprint(code)}}} // by the verbs of scripts
	for _, line := range b.err.all() {
		got["says"] = append(got["says"], outputLine{line.at, strings.TrimPrefix(line.text, "lameduck: ")})
	}
	for _, line := range b.out.all() {
		if name, ok := strings.CutPrefix(line.text, "got "); ok {
			got["sends"] = append(got["sends"], outputLine{line.at, name})
		}
	}
	compareReal(t, s, ready, got)
}

// measured matches the times in a report, which differ from run to run.
var measured = regexp.MustCompile(`[0-9]+\.[0-9] s`)

// leeway is how much too early an action may be, for scripts with two actions at nearly the
// same time.
const leeway = 5 * time.Millisecond

// invisibleActions are the verbs of actions without an effect outside lameduck.
var invisibleActions = []string{"samples", "notes"}

// compareReal compares actions with the script: the same actions of each verb in the same
// order, each at its time or up to 2 s later.
func compareReal(t *testing.T, s *script.Script, ready time.Time, got map[string][]outputLine) {
	t.Helper()
	for _, a := range s.Actions {
		verb, text, _ := strings.Cut(a.Text, " ")
		if slices.Contains(invisibleActions, verb) || a.Text == "sends KILL" { // the catch helper cannot catch KILL
			continue
		}
		if len(got[verb]) == 0 {
			t.Errorf("missing: %v %s", a.At, a.Text)
			continue
		}
		g := got[verb][0]
		got[verb] = got[verb][1:]
		if measured.ReplaceAllString(g.text, "N s") != measured.ReplaceAllString(text, "N s") {
			t.Errorf("%s %q, want %q", verb, g.text, text)
		}
		if at := g.at.Sub(ready); a.At > 0 && at < a.At-leeway || at > a.At+2*time.Second {
			t.Errorf("%s %q at %v, want %v", verb, g.text, at, a.At)
		}
	}
	for verb, rest := range got {
		for _, g := range rest {
			t.Errorf("unexpected: %s %s", verb, g.text)
		}
	}
}

// TestExitCodes covers all 256 exit codes, and death by every signal that kills by default.
func TestExitCodes(t *testing.T) {
	harmless := sig.SetOf(sig.CHLD, sig.CONT, sig.URG, sig.WINCH, sig.STOP, 20, 21, 22)
	want := map[string]int{}
	for code := range 256 {
		want[fmt.Sprintf("exit %d", code)] = code
	}
	for s := range sig.Set(^uint64(0)).Without(harmless).All {
		want[fmt.Sprintf("kill -%d $$", int(s))] = 128 + int(s)
	}
	jobs := make(chan string)
	var workers sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		workers.Go(func() {
			for command := range jobs {
				boot(t, nil, "sh", "-c", command).wantExit(want[command])
			}
		})
	}
	for command := range maps.Keys(want) {
		jobs <- command
	}
	close(jobs)
	workers.Wait()
}

// TestOrphans: of thousands of orphans none stays a zombie.
func TestOrphans(t *testing.T) {
	storm := `i=0; while [ $i -lt 2000 ]; do ( : & ); i=$((i+1)); done; exec "$@"`
	boot(t, nil, append([]string{"sh", "-c", storm, "sh"}, helperCommand("zombies")...)...).wantExit(0)
}

// TestOddOrphans: killed, stopped and traced orphans are reaped too.
func TestOddOrphans(t *testing.T) {
	for name, odd := range map[string]string{
		"killed":  `(sh -c 'kill -KILL $$' &)`,
		"stopped": `(sh -c 'echo $$; kill -STOP $$' &) | (read pid; until grep -q 'State:.T' /proc/$pid/status; do :; done; kill -CONT $pid)`,
		"traced":  `(strace -D -o /dev/null sh -c 'exit 1' &)`,
	} {
		t.Run(name, func(t *testing.T) {
			if name == "traced" {
				needs(t, "strace")
			}
			boot(t, nil, append([]string{"sh", "-c", odd + `; exec "$@"`, "sh"}, helperCommand("zombies")...)...).wantExit(0)
		})
	}
}

// TestStreams: 100 MB pass from standard input to standard output unchanged.
func TestStreams(t *testing.T) {
	var in, stderr bytes.Buffer
	io.CopyN(&in, rand.NewChaCha8([32]byte{}), 100<<20)
	cmd := exec.Command(binary, "cat")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in.Bytes()), &stderr
	if out, err := cmd.Output(); err != nil || !bytes.Equal(out, in.Bytes()) || stderr.Len() > 0 {
		t.Errorf("%d bytes come out as %d; %v; stderr: %s", in.Len(), len(out), err, &stderr)
	}
}

// TestUnread: help into a pipe without a reader is an error with 125.
func TestUnread(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd := exec.Command(binary, "--help-all")
	cmd.Stdout = w
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Run()
	w.Close()
	if code := cmd.ProcessState.ExitCode(); code != 125 || !strings.Contains(stderr.String(), "broken pipe") {
		t.Errorf("exit code %d, stderr %q; want 125 and a broken pipe", code, &stderr)
	}
}

// TestSubreaper: a lameduck other than PID 1 adopts orphans.
func TestSubreaper(t *testing.T) {
	pid, adopter := adoption(t, nil, binary)
	if adopter != pid {
		t.Errorf("the orphan's parent is %s, want lameduck, %s", adopter, pid)
	}
}

// TestNotFound: a command that cannot start gives 127 or 126, and one line with its name.
func TestNotFound(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	busy := testutil.Must(os.OpenFile(write("busy", "#!/bin/sh\n", 0o755), os.O_WRONLY, 0))
	defer busy.Close()
	for _, c := range []struct {
		command string
		code    int
		text    string
	}{
		{"no-such-program", 127, "no such file"},
		{"/no/such/program", 127, "no such file"},
		{"", 127, "no such file"},
		{write("plain", "", 0o644), 126, "permission denied"},
		{dir, 126, "permission denied"},
		{write("plain2", "", 0o644) + "/x", 127, "not a directory"},
		{write("lost", "#!/no/interpreter\n", 0o755), 127, "interpreter"},
		{busy.Name(), 126, "text file busy"},
	} {
		b := boot(t, nil, "--", c.command)
		b.wantExit(c.code)
		b.wantOneLine(fmt.Sprintf("cannot run %q: ", c.command), c.text)
	}
}

// TestFound: commands that execvp(3) finds and Go's exec.LookPath does not.
func TestFound(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"script": "echo from script $1\n", "empty": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for path, want := range map[string]string{".": "from script x", "": "from script x", "/nowhere::/bin": "from script x"} {
		b := boot(t, []string{"PATH=" + path}, "script", "x")
		b.wantExit(0)
		if out := b.out.all(); len(out) != 1 || out[0].text != want {
			t.Errorf("PATH=%s: printed %v, want %q", path, out, want)
		}
	}
	boot(t, nil, "./empty").wantExit(0)
}
