package proc

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

func TestCandidates(t *testing.T) {
	for _, cells := range tables.Rows(`
		# file | environment | candidates
		x   |                                | /bin/x /usr/bin/x
		x   | XPATH=/a PATHS=/b path=/c PATH | /bin/x /usr/bin/x
		x   | PATH=                          | x
		x   | PATH=.:/a::/b/c/               | ./x /a/x x /b/c/x
		x   | PATH=/                         | /x
		x   | A=1 PATH=/a PATH=/b            | /a/x
		a/x | PATH=/a                        | a/x
		    | PATH=/a                        |
	`) {
		if got := strings.Join(candidates(cells[0], strings.Fields(cells[1])), " "); got != cells[2] {
			t.Errorf("%q: %q", cells, got)
		}
	}
}

// TestStartError: which errors mean that the command is missing, or that it is refused, and what
// they say. The exit codes are those of env(1).
func TestStartError(t *testing.T) {
	for e, want := range map[StartError]string{
		{Err: syscall.ENOENT}:              "missing: no such file or directory",
		{Err: syscall.ENOENT, found: true}: "missing: its interpreter was not found",
		{Err: syscall.ENOTDIR}:             "missing: not a directory",
		{Err: syscall.EACCES}:              "refused: permission denied",
		{Err: syscall.E2BIG}:               "refused: argument list too long",
		{Err: syscall.EAGAIN}:              "failed: no further process is allowed: raise pids.max, or ulimit -u",
		{Err: syscall.ENOMEM}:              "failed: cannot allocate memory",
		{Err: syscall.EMFILE}:              "failed: too many open files",
		{Err: syscall.ENFILE}:              "failed: too many open files in system",
	} {
		kind, text, _ := strings.Cut(want, ": ")
		e.Command = "a b"
		if e.Missing() != (kind == "missing") || e.Refused() != (kind == "refused") || e.Error() != `cannot run "a b": `+text {
			t.Errorf("%v: missing: %v, refused: %v; want %q", &e, e.Missing(), e.Refused(), want)
		}
	}
}

// TestKillDescendant: a process is signaled whatever its parent is now; another process with
// the same number is not.
func TestKillDescendant(t *testing.T) {
	cmd := exec.Command("cat")
	testutil.Must(cmd.StdinPipe())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := testutil.Must(proc.Process(cmd.Process.Pid))
	kills := func(p Process, s sig.Signal, want error) {
		t.Helper()
		if err := new(Processes).KillDescendant(p.PID, p.Start, s); err != want {
			t.Errorf("%v to %+v: %v, want %v", s, p, err, want)
		}
	}
	kills(Process{PID: p.PID, Start: p.Start + 1}, sig.KILL, unix.ESRCH)
	kills(Process{PID: p.PID, Start: p.Start}, sig.INT, nil)
	if err := cmd.Wait(); err == nil || err.Error() != "signal: interrupt" {
		t.Errorf("ended by %v", err)
	}
	kills(p, sig.KILL, unix.ESRCH)
}

// TestReadStage: the report of a stage is read to its end; the wait for a stage that hangs is bounded.
func TestReadStage(t *testing.T) {
	from, to, err := os.Pipe()
	testutil.Must(from, err)
	if got := readStage(from, time.Millisecond); string(got) != "\x01" {
		t.Errorf("a stage that hangs: %q", got)
	}
	to.WriteString("\x01\x02")
	to.Close()
	if got := readStage(from, time.Hour); string(got) != "\x01\x02" {
		t.Errorf("a stage that fails: %q", got)
	}
}

// TestFind: Find has the error of Start, and runs nothing; both are about our working directory.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	env := []string{"PATH=/nowhere:" + dir}
	for name, mode := range map[string]os.FileMode{"plain": 0o644, "program": 0o755} {
		testutil.Must(0, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho ran > "+dir+"/ran\n"), mode))
	}
	for _, cells := range tables.Rows(strings.ReplaceAll(`
		# in | program | error
		    | program       | <nil>
		DIR | ./program     | <nil>
		    | DIR/program   | <nil>
		/   | ./program     | cannot run "./program": no such file or directory
		    | missing       | cannot run "missing": no such file or directory
		    | plain         | cannot run "plain": permission denied
		    | DIR           | cannot run "DIR": permission denied
		    | DIR/program/x | cannot run "DIR/program/x": not a directory
	`, "DIR", dir)) {
		t.Chdir(cmp.Or(cells[0], "/tmp"))
		err := new(Processes).Find(cells[1:2], env)
		if fmt.Sprint(err) != cells[2] {
			t.Errorf("%q: %v", cells, err)
		}
		if err == nil {
			continue
		}
		if _, started := new(Processes).Start(Command{Argv: cells[1:2], Env: env}); started == nil || started.Error() != cells[2] {
			t.Errorf("%q: Start says %v", cells, started)
		}
	}
	if _, err := os.Stat(dir + "/ran"); err == nil {
		t.Error("the program ran")
	}
}
