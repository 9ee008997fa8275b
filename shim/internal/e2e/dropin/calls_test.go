package dropin_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestDropinCalls: the same call gives the same exit code and standard output.
func TestDropinCalls(t *testing.T) {
	calls := map[string][][]string{}
	for line := range strings.Lines(string(testutil.Must(os.ReadFile("testdata/calls.txt")))) {
		if cells := strings.SplitN(strings.TrimSuffix(line, "\n"), " | ", 4); len(cells) == 4 {
			calls[cells[0]] = append(calls[cells[0]], cells[1:])
		}
	}
	if len(calls["tini"]) < 70 || len(calls["dumb-init"]) < 70 || len(calls["catatonit"]) < 40 || len(calls["lameduck"]) < 14 {
		t.Fatal("calls are missing")
	}
	for name, calls := range calls {
		onEachInit(t, name, func(t *testing.T, init string) {
			dir := writePrograms(t)
			for _, cells := range calls {
				result, call := cells[0], cells[2]
				if isLameduck(init) {
					result = cmp.Or(cells[1], result)
				}
				var code int
				var want string
				fmt.Sscanf(result, "%d %q", &code, &want)
				got, out := runCall(t, call, init, dir)
				begins, open := strings.CutSuffix(want, "…")
				if got != code || out != want && !(open && out != "" && strings.HasPrefix(out, begins)) {
					t.Errorf("%s: exit code %d and output %q; want %s", call, got, out, result)
				}
			}
		})
	}
}

// runCall runs a call in a new session, without a terminal, and returns the exit code and
// standard output.
func runCall(t *testing.T, call, init, dir string) (code int, out string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testutil.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", call)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "I=" + init, "D=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	text, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", call, err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// programs are the texts of the programs that calls run, and of some that inits cannot run.
var programs = map[string]string{
	"script": "echo script $1\n", "empty": "", "lost": "#!/no/interpreter\n", "plain": "",
	"shares": `#!/bin/sh
		set -- $(cut -d" " -f5,6 /proc/$$/stat) $(cut -d" " -f5,6 /proc/$PPID/stat) # see proc_pid_stat(5)
		[ $1 = $3 ] && group=group; [ $2 = $4 ] && session=session; echo $group $session`,
	"orphan": `#!/bin/sh
		orphan=$(sleep 60 >&- & echo $!)
		parent=$(grep PPid /proc/$orphan/status)
		kill $orphan
		[ "${parent#PPid:?}" = $PPID ] || exit 0
		while [ -e /proc/$orphan ]; do sleep 0.01; done
		echo adopted`,
	"group": `#!/bin/sh
		mkfifo $D/ready
		trap 'echo first; [ $1 ] || kill $child; wait; rm $D/ready; exit 5' USR1
		(trap 'echo second; exit' USR1; trap exit TERM; echo >$D/ready; while :; do sleep 0.01; done) &
		child=$!
		read ready <$D/ready
		kill -USR1 $PPID
		wait`,
	"leftover": `#!/bin/sh
		mkfifo $D/ready
		(trap 'echo got TERM' TERM; trap 'echo got USR1' USR1; trap exit 64
			echo >$D/ready; while :; do sleep 0.01; done) &
		echo $! >$D/pid
		read ready <$D/ready
		rm $D/ready`,
}

// writePrograms returns a folder with the programs.
func writePrograms(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range programs {
		testutil.WriteFile(t, filepath.Join(dir, name), text)
		if name != "plain" {
			os.Chmod(filepath.Join(dir, name), 0o755)
		}
	}
	testutil.Must(0, os.Symlink("loop", filepath.Join(dir, "loop")))
	return dir
}
