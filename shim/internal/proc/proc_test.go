package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
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
	for _, cells := range script.Rows(`
		# file | environment | candidates
		x   |                                     | /bin/x /usr/bin/x
		x   | XPATH=/a PATHS=/b path=/c PATH      | /bin/x /usr/bin/x
		x   | PATH=                               | x
		x   | PATH=.                              | ./x
		x   | PATH=/a:/b/c                        | /a/x /b/c/x
		x   | PATH=:/a                            | x /a/x
		x   | PATH=/a:                            | /a/x x
		x   | PATH=/a::/b                         | /a/x x /b/x
		x   | PATH=/a/:rel/                       | /a/x rel/x
		x   | PATH=/                              | /x
		x   | A=1 PATH=/a PATH=/b                 | /a/x
		x   | PATH= PATH=/b                       | x
		./x | PATH=/a                             | ./x
		/x  | PATH=/a                             | /x
		a/x | PATH=/a                             | a/x
		x/  | PATH=/a                             | x/
		    | PATH=/a                             |
		    |                                     |
	`) {
		if got := strings.Join(candidates(cells[0], strings.Fields(cells[1])), " "); got != cells[2] {
			t.Errorf("%q: %q", cells, got)
		}
	}
}

// TestStartError: the exit codes are those of env(1).
func TestStartError(t *testing.T) {
	for errno, c := range map[syscall.Errno]struct {
		code     int
		contains string
	}{
		syscall.ENOENT:  {127, "no such file"},
		syscall.ENOTDIR: {127, "not a directory"},
		syscall.EACCES:  {126, "permission denied"},
		syscall.EPERM:   {126, "not permitted"},
		syscall.ENOEXEC: {126, "exec format"},
		syscall.ETXTBSY: {126, "text file busy"},
		syscall.E2BIG:   {126, "too long"},
		syscall.EAGAIN:  {125, "no further process is allowed: raise pids.max"},
		syscall.ENOMEM:  {125, "memory"},
		syscall.EMFILE:  {125, "open files"},
		syscall.ENFILE:  {125, "open files"},
	} {
		e := &StartError{Command: "a b", Err: errno}
		if missing, refused := e.Missing(), e.Refused(); missing != (c.code == 127) || refused != (c.code == 126) {
			t.Errorf("%v: missing: %v, refused: %v; want %d", errno, missing, refused, c.code)
		}
		if text := e.Error(); !strings.HasPrefix(text, `cannot run "a b": `) || !strings.Contains(text, c.contains) {
			t.Errorf("%v: %q", errno, text)
		}
	}
	e := &StartError{Command: "x", Err: syscall.ENOENT, found: true}
	if !e.Missing() || !strings.Contains(e.Error(), "interpreter") {
		t.Errorf("a script whose interpreter is missing: %v", e)
	}
}

// TestHide: variables of Go's runtime alone are hidden, each by the number of its entry, in a
// copy.
func TestHide(t *testing.T) {
	const unhidden = "GODEBUGX=1 XGODEBUG=1 GO=1 GODEBUG GOMEMLIMIT_MIB=1"
	env := strings.Fields(unhidden + " GODEBUG= GOTRACEBACK=x GOMAXPROCS=2 GOGC=off GOMEMLIMIT=1 GODEBUG=y=1,z=2")
	const want = unhidden + " \x015:GODEBUG= \x016:GOTRACEBACK=x \x017:GOMAXPROCS=2 \x018:GOGC=off \x019:GOMEMLIMIT=1 " +
		"\x0110:GODEBUG=y=1,z=2"
	if got := strings.Join(hide(env), " "); got != want || env[5] != "GODEBUG=" {
		t.Errorf("%q became\n%q, want\n%q", env, got, want)
	}
}

// TestKillDescendant: a process is signaled whatever its parent is now; another process with
// the same number is not.
func TestKillDescendant(t *testing.T) {
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := proc.Process(cmd.Process.Pid)
	if err != nil || p.Parent != os.Getpid() || p.Start == 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	other := p
	other.Start++ // as of a process that had the number before
	if err := new(Processes).KillDescendant(other, sig.KILL); err != unix.ESRCH {
		t.Errorf("a process that was started at another time: %v, want %v", err, unix.ESRCH)
	}
	p.Parent = 1 // as before its parent ended
	if err := new(Processes).KillDescendant(p, sig.INT); err != nil {
		t.Errorf("the process itself: %v", err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		t.Errorf("ended by %v", err)
	}
	if err := new(Processes).KillDescendant(p, sig.KILL); err != unix.ESRCH {
		t.Errorf("a process that is gone: %v, want %v", err, unix.ESRCH)
	}
}

// TestReadStage: the report of a stage tells how the stage ended; the wait for a stage that
// hangs is bounded.
func TestReadStage(t *testing.T) {
	for want, hangs := range map[string]bool{"": false, "\x01": false, "\x01\x02\x01": false, "\x01 hangs": true} {
		from, to, err := os.Pipe()
		must(err)
		text, _, _ := strings.Cut(want, " ")
		patience := time.Hour
		if hangs {
			patience = time.Millisecond
		} else {
			to.WriteString(text)
			to.Close()
		}
		if got := string(readStage(from, patience)); got != text {
			t.Errorf("%q read as %q", want, got)
		}
	}
}

// TestHideGoEnv: the second execution goes without the variables, keeps the arguments, and
// still has all variables for the command.
func TestHideGoEnv(t *testing.T) {
	for env, want := range map[string]string{
		"A=1 GODEBUG=madvdontneed=1 B=2 GOTRACEBACK=all": "runtime has [] []; command gets [A=1 GODEBUG=madvdontneed=1 B=2 GOTRACEBACK=all " + raceInHaste + "]; args [a b]",
		"\x01OGC=5 GODEBUG= \x010:A":                     "runtime has [] []; command gets [\x01OGC=5 GODEBUG= \x010:A " + raceInHaste + "]; args [a b]",
	} {
		if got := help(t, strings.Fields(env), "hide", "a", "b"); got != want {
			t.Errorf("%s:\n got %s\nwant %s", env, got, want)
		}
	}
}

func helpHide(args []string) {
	HideGoEnv()
	fmt.Printf("runtime has [%s] [%s]; command gets %v; args %v", os.Getenv("GODEBUG"), os.Getenv("GOTRACEBACK"), Environ(), args)
}

// TestCheckDescriptors: four free descriptors are enough; with fewer the error has their
// number. No descriptor is kept.
func TestCheckDescriptors(t *testing.T) {
	for free := range 7 {
		got := help(t, nil, "descriptors", strconv.Itoa(free))
		want := fmt.Sprintf("then %d are free", free)
		if free < 4 {
			want = fmt.Sprintf("4 free file descriptors are needed, but only %d are available: raise the limit of open files (RLIMIT_NOFILE); ", free) + want
		}
		if got != want {
			t.Errorf("with %d free:\n got %s\nwant %s", free, got, want)
		}
	}
}

// helpDescriptors leaves as many free descriptors as args say.
func helpDescriptors(args []string) {
	free, _ := strconv.Atoi(args[0])
	const limit = 64
	must(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: limit}))
	taken := takeAll()
	for _, fd := range taken[:free] {
		unix.Close(fd)
	}
	if err := checkDescriptors(); err != nil {
		fmt.Printf("%v; ", err)
	}
	fmt.Printf("then %d are free", len(takeAll()))
}

// takeAll opens descriptors up to the limit.
func takeAll() (taken []int) {
	for {
		fd, err := unix.Dup(0)
		if err != nil {
			return taken
		}
		taken = append(taken, fd)
	}
}

func must(err error) {
	if err != nil {
		fmt.Println("helper:", err)
		os.Exit(1)
	}
}

// high is a descriptor number that the kernel does not assign again when closed.
const high = 300

// TestReleaseInherited: inherited descriptors are closed, our own stay, and Go's timers still
// work.
func TestReleaseInherited(t *testing.T) {
	if got, want := help(t, nil, "release"), "inherited: false, ours: true, in /"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func helpRelease([]string) {
	<-time.After(1) // makes the runtime open its epoll
	ours, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, high)
	must(err)
	inherited, err := unix.FcntlInt(0, unix.F_DUPFD, high)
	must(err)
	new(Processes).ReleaseInherited()
	dir, _ := os.Getwd()
	<-time.After(time.Millisecond)
	fmt.Printf("inherited: %v, ours: %v, in %s", isOpen(inherited), isOpen(ours), dir)
}

func isOpen(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil
}

// TestFind: Find has the error of Start, and runs nothing.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	env := []string{"PATH=/nowhere:" + dir}
	for name, mode := range map[string]os.FileMode{"plain": 0o644, "program": 0o755} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho ran > "+dir+"/ran\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, cells := range script.Rows(strings.ReplaceAll(`
		# in | program | error
		    | program       |
		DIR | ./program     |
		    | DIR/program   |
		/   | ./program     | no such file
		    | missing       | no such file
		    | plain         | permission denied
		    | DIR           | permission denied
		    | DIR/program/x | not a directory
	`, "DIR", dir)) {
		command := Command{Argv: []string{cells[1]}, Env: env, Dir: cells[0]}
		err := find(command.Dir, command.Argv, env)
		if (err == nil) != (cells[2] == "") || err != nil && !strings.Contains(err.Error(), cells[2]) {
			t.Errorf("%q: %v", cells, err)
		}
		if err == nil {
			continue
		}
		if _, started := command.Start(); started == nil || started.Error() != err.Error() {
			t.Errorf("%q: Find says %v, Start %v", cells, err, started)
		}
	}
	if _, err := os.Stat(dir + "/ran"); err == nil {
		t.Error("the program ran")
	}
}
