package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

// TestMain makes the test binary the laboratory too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		main()
		return
	}
	os.Exit(m.Run())
}

// lab runs a command of the laboratory.
func lab(t *testing.T, args ...string) (said string, err error) {
	out, err := exec.Command("/proc/self/exe", args...).CombinedOutput()
	if regexp.MustCompile("cannot make namespaces|not found").Match(out) {
		t.Skipf("%s", out)
	}
	return string(out), err
}

// script writes a lameduck that runs a line in place of its own work, with the server in "$@", and
// another in place of watch.
func script(t *testing.T, line, watch string) (path string) {
	path = filepath.Join(t.TempDir(), "lameduck")
	text := "#!/bin/sh\n[ $1 != watch ] || exec " + watch + "\n" +
		"while [ \"$1\" != -- ]; do shift; done\nshift\n" + line + "\n"
	must.Do(os.WriteFile(path, []byte(text), 0o755))
	return path
}

// TestBroken shows that the laboratory can fail: the claims about a lameduck that does not
// hold are broken.
func TestBroken(t *testing.T) {
	lameduck := script(t, `exec "$@"`, `echo '{"message":"all is well","cut":0,"refused":0}' `)
	for want, args := range map[string][]string{
		// The strips have a column of time once all its requests have ended.
		`(?s)bare +\.[.x]*x[.x]*\. 0\.\d s, \d+ failed.*BROKEN  demo, all: lameduck: lost`: {"demo"},
		`(?s)\| lameduck --until=quiet +\| \d+ .*<text x="8">lameduck.*BROKEN  steady, all: lameduck --until=quiet: lost.*BROKEN  lameduck watch`: {
			"rollout", "-quick", "-svg=/dev/stdout", `-run=steady: go \| lameduck --until=quiet$`},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			out, err := lab(t, append(args, lameduck)...)
			if err == nil || !regexp.MustCompile(want).MatchString(out) {
				t.Errorf("ended with %v:\n%s", err, out)
			}
		})
	}
}

// TestInterrupted: an interrupted demo leaves no process, though a server outlives its parent.
func TestInterrupted(t *testing.T) {
	must.Do(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	cmd := exec.Command("/proc/self/exe", "demo", script(t, `"$@"; exit`, "sleep 60"))
	must.Do(cmd.Start())
	time.Sleep(time.Second)
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	if !must.Soon(10*time.Second, func() bool {
		_, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		return err == unix.ECHILD
	}) {
		t.Error("children are left")
	}
}

// TestQuick plays the quick selection of lab truth with the built program.
func TestQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("takes more than a minute")
	}
	const lameduck = "../../lameduck"
	if _, err := os.Stat(lameduck); err != nil {
		t.Fatalf("%v: make build first", err)
	}
	out, err := lab(t, "truth", "-quick", lameduck)
	t.Logf("\n%s", out)
	if err != nil {
		t.Error(err)
	}
}
