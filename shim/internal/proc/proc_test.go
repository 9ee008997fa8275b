package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Helpers change a whole process: the test binary runs once more, as "helper NAME ARG...".
var helpers = map[string]func(args []string){
	"hide":        helpHide,
	"descriptors": helpDescriptors,
	"release":     helpRelease,
}

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "helper" {
		helpers[os.Args[2]](os.Args[3:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// raceInHaste saves each process a second at exit under the race detector.
const raceInHaste = "GORACE=atexit_sleep_ms=0"

// help runs a helper in the environment env, and returns its output. Under an emulator for
// another kind of processor help skips the test: the kernel runs the emulator, and cannot
// execute the test binary.
func help(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{"helper"}, args...)...)
	cmd.Env = append(slices.Clone(env), raceInHaste)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.ENOEXEC) {
		t.Skip("cannot execute the test binary, which an emulator runs: ", err)
	}
	if err != nil {
		t.Fatalf("helper %v: %v: %s", args, err, out)
	}
	return string(out)
}

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
		if err := new(Processes).KillDescendant(p, s); err != want {
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
	to.WriteString("\x01\x02\x01")
	to.Close()
	if got := readStage(from, time.Hour); string(got) != "\x01\x02\x01" {
		t.Errorf("a stage that fails: %q", got)
	}
}

// TestHideGoEnv: the second execution goes without the variables of Go's runtime, keeps the
// arguments, and still has all variables for the command.
func TestHideGoEnv(t *testing.T) {
	env := "GODEBUGX=1 \x010:A=1 GODEBUG=x=1 GOTRACEBACK=all GOMAXPROCS=2 GOMEMLIMIT=1GiB GOGC=off " + raceInHaste
	hidden := "GODEBUGX=1 \x010:A=1 \x012:GODEBUG=x=1 \x013:GOTRACEBACK=all \x014:GOMAXPROCS=2 \x015:GOMEMLIMIT=1GiB " +
		"\x016:GOGC=off " + raceInHaste
	want := fmt.Sprintf("runtime has [%s]; command gets [%s]; args [a b]", hidden, env)
	if got := help(t, strings.Fields(env), "hide", "a", "b"); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func helpHide(args []string) {
	HideGoEnv()
	fmt.Printf("runtime has %v; command gets %v; args %v", os.Environ(), Environ(), args)
}

// TestCheckDescriptors: four free descriptors are enough; with fewer the error has their
// number. No descriptor is kept.
func TestCheckDescriptors(t *testing.T) {
	for free, want := range map[string]string{
		"0": "4 free file descriptors are needed, but only 0 are available: raise the limit of open files (RLIMIT_NOFILE)",
		"3": "4 free file descriptors are needed, but only 3 are available: raise the limit of open files (RLIMIT_NOFILE)",
		"4": "<nil>",
	} {
		if got := help(t, nil, "descriptors", free); got != want+", kept: false" {
			t.Errorf("with %s free: %s, want %s", free, got, want)
		}
	}
}

// helpDescriptors leaves as many free descriptors as args say.
func helpDescriptors(args []string) {
	lowest, free := testutil.LowestFree(), uint64(0)
	fmt.Sscan(args[0], &free)
	limit := unix.Rlimit{Cur: uint64(lowest) + free, Max: 100}
	testutil.Must(0, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	err := checkDescriptors()
	limit.Cur = limit.Max
	testutil.Must(0, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	fmt.Printf("%v, kept: %v", err, testutil.LowestFree() != lowest)
}

// TestReleaseInherited: inherited descriptors are closed, our own stay, and Go's timers still
// work.
func TestReleaseInherited(t *testing.T) {
	if got, want := help(t, nil, "release"), "inherited: bad file descriptor, ours: <nil>, in /"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func helpRelease([]string) {
	<-time.After(1)  // makes the runtime open its epoll
	const high = 300 // a number that is not assigned again when closed
	ours := testutil.Must(unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, high))
	inherited := testutil.Must(unix.FcntlInt(0, unix.F_DUPFD, high))
	new(Processes).ReleaseInherited()
	dir, _ := os.Getwd()
	<-time.After(time.Millisecond)
	fmt.Printf("inherited: %v, ours: %v, in %s", unix.Close(inherited), unix.Close(ours), dir)
}

// TestFind: Find has the error of Start, and runs nothing.
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
		command := Command{Argv: cells[1:2], Env: env, Dir: cells[0]}
		err := find(command.Dir, command.Argv, env)
		if fmt.Sprint(err) != cells[2] {
			t.Errorf("%q: %v", cells, err)
		}
		if err == nil {
			continue
		}
		if _, started := command.Start(); started == nil || started.Error() != cells[2] {
			t.Errorf("%q: Start says %v", cells, started)
		}
	}
	if _, err := os.Stat(dir + "/ran"); err == nil {
		t.Error("the program ran")
	}
	t.Chdir(dir)
	if err := new(Processes).Find([]string{"./program"}, env); err != nil {
		t.Errorf("in our working directory: %v", err)
	}
}
