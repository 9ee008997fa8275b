package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Tests of the environment of a command: the same with and without lameduck. Most tests run
// the same program both ways and compare.

// commandOutput runs a program, wants success, and returns both output streams.
func commandOutput(t *testing.T, env []string, words ...string) string {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", words, err, out)
	}
	return string(out)
}

// wantSameOutput runs a bash script twice: with x empty, and with x as the lameduck command
// line. Scripts say "exec $x PROGRAM". The outputs must be equal.
func wantSameOutput(t *testing.T, env []string, text string) {
	t.Helper()
	without := commandOutput(t, append(env, "x="), "bash", "-c", text)
	with := commandOutput(t, append(env, "x="+binary+" --"), "bash", "-c", text)
	if with != without || without == "" {
		t.Errorf("%s\nwithout: %s\nwith:    %s", text, without, with)
	}
}

// TestInherits: limits, attributes and descriptors that a command inherits.
func TestInherits(t *testing.T) {
	needs(t, "bash")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"soft limit of files": "ulimit -Sn 123; exec $x bash -c 'ulimit -Sn; ulimit -Hn'",
		"other limits":        "ulimit -c 0; ulimit -s 4096; exec $x bash -c 'ulimit -a'",
		"umask":               "umask 027; exec $x bash -c umask",
		"niceness":            "exec nice -n 5 $x nice",
		"working directory":   "cd " + dir + "; exec $x pwd",
		"descriptors":         "exec 7</dev/null 9>/dev/zero; exec $x ls -l --time-style=+ /proc/self/fd | sed 's/.* \\([0-9]* ->\\)/\\1/' | sed 's/:.*//' | grep -v '/proc/'",
		"arguments":           "exec $x printf '%s|' -d 1 -- --help 'a b' '' -",
		"high descriptors":    "exec 200</dev/null; exec $x readlink /proc/self/fd/200",
	} {
		t.Run(name, func(t *testing.T) { wantSameOutput(t, nil, text) })
	}
}

// TestInheritsEnvironment: the command gets all variables in order, also the variables of Go's
// runtime, which change nothing in lameduck itself.
func TestInheritsEnvironment(t *testing.T) {
	env := []string{"A=1", "GODEBUG=gctrace=1,schedtrace=1", "B=2", "GOGC=1", "GOMAXPROCS=3", "GOMEMLIMIT=1MiB", "GOTRACEBACK=crash", "EMPTY=", "C=x=y", "GOMEMLIMIT_MIB=9", "GOMAXPROCS_X=1", "GOTRACEBACKS=1"}
	without := commandOutput(t, env, "env")
	if with := commandOutput(t, env, binary, "env"); with != without {
		t.Errorf("without:\n%s\nwith:\n%s", without, with)
	}
}

// dropinNames are lameduck's name and names of inits.
var dropinNames = []string{"lameduck", "tini", "dumb-init", "catatonit"}

// startedAs runs the program at path with argv and env exactly as given (os/exec
// would drop duplicate variables), and returns its standard output.
func startedAs(t *testing.T, path string, env []string, argv ...string) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := os.StartProcess(path, argv, &os.ProcAttr{Env: env, Files: []*os.File{nil, w, os.Stderr}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out := testutil.Must(io.ReadAll(r))
	if state := testutil.Must(p.Wait()); !state.Success() {
		t.Fatalf("%q: %v: %s", argv, state, out)
	}
	return string(out)
}

// TestInheritsEntries: all entries of the environment pass unchanged, through the second stage
// too: a second entry of one name, an entry without "=", an empty entry, bytes other than UTF-8.
func TestInheritsEntries(t *testing.T) {
	cat := testutil.Must(exec.LookPath("cat"))
	env := []string{"A=1", "B", "A=2", "", "=x", "A=1", "C=caf\xe9", "PATH=/bin", "PATH=/none", "LAMEDUCK_B", "GOGC=1", "GOGC=2", "GOTRACEBACK", "LAST="}
	want := startedAs(t, cat, env, "cat", "/proc/self/environ")
	if want != strings.Join(env, "\x00")+"\x00" {
		t.Fatalf("startedAs passed %q", want)
	}
	for _, name := range dropinNames {
		if got := startedAs(t, binary, env, name, "cat", "/proc/self/environ"); got != want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, want)
		}
	}
	blocked := []string{"lameduck-stage", "99", "0", "200", "0"} // USR1, which needs a second stage
	if got := startedAs(t, binary, env, append(blocked, binary, "cat", "/proc/self/environ")...); got != want {
		t.Errorf("second stage:\n got %q\nwant %q", got, want)
	}
}

// TestInheritsBytes: arguments pass unchanged under every name, whatever their bytes.
func TestInheritsBytes(t *testing.T) {
	every := make([]byte, 255)
	for i := range every {
		every[i] = byte(i + 1)
	}
	args := []string{"caf\xe9", "\xff\xfe", string(every), "", "\xc3"}
	for _, name := range dropinNames {
		for _, dashes := range [][]string{{}, {"--"}} {
			call := slices.Concat([]string{name}, dashes, []string{"printf", "%s|"}, args)
			got := startedAs(t, binary, []string{"PATH=/usr/bin:/bin"}, call...)
			if want := strings.Join(args, "|") + "|"; got != want {
				t.Errorf("%s %q:\n got %q\nwant %q", name, dashes, got, want)
			}
		}
	}
}

// TestInheritsSignals: the command starts with lameduck's blocked and ignored signals.
func TestInheritsSignals(t *testing.T) {
	needs(t, "bash")
	signals := regexp.MustCompile(`(?m)^Sig(Blk|Ign):.*$`)
	set := func(list ...sig.Signal) sig.Set { return sig.SetOf(list...) }
	all := (^sig.Set(0)).Without(set(sig.KILL, sig.STOP))
	for _, c := range []struct{ blocked, ignored sig.Set }{
		{0, 0},
		{set(sig.TERM, sig.TTIN, 4, 37, sig.USR1), set(sig.INT, sig.HUP, sig.PIPE, sig.URG, sig.TTOU, 11, sig.CHLD)},
		{0, set(sig.INT)},
		{0, set(sig.CHLD)},
		{set(sig.CHLD), 0},
		{0, set(32)}, // posix_spawn(3) leaves 32 and 33 ignored; Go's runtime changes 33
		{all.Without(set(33)), all.Without(set(33))},
	} {
		// lameduck's second stage blocks and ignores the signals; cat prints the result.
		stage := fmt.Sprintf(`exec -a lameduck-stage %s 99 0 %x %x "$@"`, binary, uint64(c.blocked), uint64(c.ignored))
		as := func(words ...string) []string { return append([]string{"bash", "-c", stage, "bash"}, words...) }
		without := signals.FindAllString(commandOutput(t, nil, as("cat", "/proc/self/status")...), -1)
		with := signals.FindAllString(commandOutput(t, nil, as(binary, "cat", "/proc/self/status")...), -1)
		if !slices.Equal(with, without) || len(with) != 2 {
			t.Errorf("without: %q\nwith:    %q", without, with)
		}
		if got, want := parseSignalSet(t, without[0])|parseSignalSet(t, without[1]), c.blocked|c.ignored; got.Without(set(32)) != want.Without(set(32)) {
			t.Errorf("the second stage set %q", without)
		}
	}
}

// parseSignalSet parses a line of /proc/PID/status with a set of signals, as SigIgn.
func parseSignalSet(t *testing.T, line string) sig.Set {
	t.Helper()
	bits, err := strconv.ParseUint(strings.Fields(line)[1], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return sig.Set(bits)
}

// TestSecondStageFails: start errors have the same line and code with a second stage.
func TestSecondStageFails(t *testing.T) {
	needs(t, "bash")
	for command, want := range map[string]struct {
		code int
		text string
	}{
		"/no/such":    {127, "no such file"},
		"/etc/passwd": {126, "permission denied"},
	} {
		cmd := exec.Command("bash", "-c", "trap '' INT; exec "+binary+" "+command)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != want.code || !strings.Contains(string(out), want.text) || strings.Count(string(out), "\n") != 1 {
			t.Errorf("%s: exit code %d, output %s; want %d and %q in one line", command, code, out, want.code, want.text)
		}
	}
}

// TestSecondStageBare: the second stage needs no file but the command.
func TestSecondStageBare(t *testing.T) {
	needs(t, "bash", "chroot")
	if os.Getuid() != 0 {
		t.Skip("needs root, for chroot")
	}
	root := t.TempDir()
	if err := os.WriteFile(root+"/lameduck", testutil.Must(os.ReadFile(binary)), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", "trap '' INT; exec chroot "+root+" /lameduck -- /lameduck --version")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "lameduck version ") {
		t.Errorf("%v; output: %s", err, out)
	}
}

// TestKeepsNothing: lameduck itself has / as its working directory, and keeps none of the
// inherited descriptors open.
func TestKeepsNothing(t *testing.T) {
	needs(t, "bash", "nsenter")
	b := boot(t, nil, "bash", "-c", "exec 7</dev/zero; cd /tmp; exec "+binary+" --log-level=error bash -c 'echo $PPID; read end'")
	pid := b.out.wait(t, "").text
	if _, err := strconv.Atoi(pid); err != nil {
		t.Fatal(err)
	}
	script := `readlink /proc/` + pid + `/cwd; ls -l /proc/` + pid + `/fd | sed -n 's/.*-> //p' | sort -u`
	// The pid is that of the PID namespace, of which another lameduck is PID 1.
	out := commandOutput(t, nil, "nsenter", "-t", strconv.Itoa(b.cmd.Process.Pid), "-p", "-m", "sh", "-c", script)
	if !strings.HasPrefix(out, "/\n") || strings.Contains(out, "/dev/zero") || !strings.Contains(out, "eventpoll") {
		t.Errorf("working directory and descriptors:\n%s", out)
	}
	b.sendLine("end")
	b.wantExit(0)
}

// TestLeavesDirectoryFirst: lameduck changes to / before the fork, so that the command never
// sees lameduck in another directory. Where the path of the working directory is gone, the
// change follows the fork, because the command needs the directory.
func TestLeavesDirectoryFirst(t *testing.T) {
	needs(t, "strace", "bash")
	calls := regexp.MustCompile(`(?m)(chdir\("/"\)|clone.*CLONE_VFORK.*|vfork\()`)
	for script, want := range map[string]string{
		"":                            "chdir clone",
		"mkdir x; cd x; rmdir $PWD; ": "clone chdir",
	} {
		trace := filepath.Join(t.TempDir(), "trace")
		script = "cd " + t.TempDir() + "; " + script + "exec strace -o " + trace + " -e trace=chdir,clone,clone3,vfork " + binary + " true"
		commandOutput(t, nil, "bash", "-c", script)
		var order []string
		for _, call := range calls.FindAllString(string(testutil.Must(os.ReadFile(trace))), -1) {
			order = append(order, strings.FieldsFunc(call, func(c rune) bool { return c == '(' })[0])
		}
		if got := strings.Join(slices.Compact(order), " "); !strings.HasPrefix(got, want) {
			t.Errorf("%s: system calls %s, want %s", script, got, want)
		}
	}
}

// TestInheritsDirectory: a program with a relative path and a working directory without a path
// work as without lameduck, and $0 of a script is unchanged.
func TestInheritsDirectory(t *testing.T) {
	needs(t, "bash")
	for _, text := range []string{
		`cd $D; exec ${x:-env} ./script`,
		`cd $D; PATH=.:$PATH exec ${x:-env} script`,
		`cd $D/sub; exec ${x:-env} ../script`,
		`cd $D/sub; rm -r $D/sub; exec ${x:-env} readlink /proc/self/cwd`,
		`cd -P $D/link; exec ${x:-env} readlink /proc/self/cwd`,
		`cd $D/sub; trap '' INT; exec ${x:-env} ../script`,
	} {
		dir := t.TempDir()
		script := "rm -rf $D; mkdir -p $D/sub; ln -s sub $D/link; printf '#!/bin/sh\necho $0 $PWD\nreadlink /proc/self/cwd\n' >$D/script; chmod +x $D/script; " + text
		wantSameOutput(t, []string{"D=" + dir}, script)
	}
}

// TestListenPID: where systemd's LISTEN_PID is lameduck's pid, the command gets its own pid.
// The pid of another process stays.
func TestListenPID(t *testing.T) {
	needs(t, "bash")
	ask := `export LISTEN_PID=$$; exec ` + binary + ` bash -c 'echo $LISTEN_PID $$'`
	own := strings.Fields(commandOutput(t, nil, "bash", "-c", ask))
	if len(own) != 2 || own[0] != own[1] {
		t.Errorf("LISTEN_PID and the command's pid: %v, want equal pids", own)
	}
	other := commandOutput(t, []string{"LISTEN_PID=1"}, binary, "sh", "-c", "echo $LISTEN_PID")
	if other != "1\n" {
		t.Errorf("LISTEN_PID=1 became %s", other)
	}
	onStop := `export LISTEN_PID=$$; exec ` + binary + ` -e 143 --delay=0.1 --grace-period=9 --on-stop='sh -c "echo $LISTEN_PID $$"' sh -c 'kill $PPID; exec sleep 9' 2>/dev/null`
	beside := strings.Fields(commandOutput(t, nil, "bash", "-c", onStop))
	if len(beside) != 2 || beside[0] == beside[1] {
		t.Errorf("LISTEN_PID and the pid of --on-stop: %v, want different pids", beside)
	}
}

// TestSecondStagePoor: with too few descriptors the start fails, and no inherited state is
// lost. Without ppoll(2) the start does not wait for the 10 s of a stage that hangs.
func TestSecondStagePoor(t *testing.T) {
	needs(t, "bash")
	cmd := exec.Command("bash", "-c", "trap '' INT; ulimit -n 8; exec "+binary+" true")
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 125 || !strings.Contains(string(out), "too many open files") {
		t.Errorf("with 8 descriptors: exit code %d, output %s", code, out)
	}
	b := bootStage(t, fmt.Sprintf("stage:ignore=USR2,deny=%d:%d", unix.SYS_PPOLL, int(unix.EPERM)), nil, "true")
	b.wantExit(0)
	if took := time.Since(b.start); took > 8*time.Second {
		t.Errorf("without ppoll the start takes %v", took)
	}
}

// TestClosedStreams: closed standard streams become /dev/null.
func TestClosedStreams(t *testing.T) {
	needs(t, "bash")
	path := filepath.Join(t.TempDir(), "streams")
	for _, closed := range []string{"<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-"} {
		text := fmt.Sprintf(`%s sh -c 'for i in 0 1 2; do readlink /proc/self/fd/$i; done >%s; exit 5' %s`, binary, path, closed)
		cmd := exec.Command("bash", "-c", text)
		cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != 5 {
			t.Errorf("%s: exit code %d, want 5", closed, code)
		}
		if text, _ := os.ReadFile(path); strings.Count(string(text), "\n") != 3 {
			t.Errorf("%s: streams %s, want three", closed, text)
		}
	}
}
