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

// What a command sees under lameduck is what it sees without: each of these
// tests runs the same words both ways.

// output runs words, and wants success.
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

// same wants the same output of a shell's words without lameduck ("exec $x WORDS"
// with nothing for x) and with it.
func wantSameOutput(t *testing.T, env []string, text string) {
	t.Helper()
	without := commandOutput(t, append(env, "x="), "bash", "-c", text)
	with := commandOutput(t, append(env, "x="+binary+" --"), "bash", "-c", text)
	if with != without || without == "" {
		t.Errorf("%s\nwithout: %s\nwith:    %s", text, without, with)
	}
}

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

// TestInheritsEnvironment: all of it, in its order, with what is meant for Go
// programs, and changed by nothing of that ourselves.
func TestInheritsEnvironment(t *testing.T) {
	env := []string{"A=1", "GODEBUG=gctrace=1,schedtrace=1", "B=2", "GOGC=1", "GOMAXPROCS=3", "GOMEMLIMIT=1MiB", "GOTRACEBACK=crash", "EMPTY=", "C=x=y"}
	without := commandOutput(t, env, "env")
	if with := commandOutput(t, env, binary, "env"); with != without {
		t.Errorf("without:\n%s\nwith:\n%s", without, with)
	}
}

// dropinNames are the names under which the built binary is another init.
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

// TestInheritsEntries: the environment is a list of entries, which pass unchanged:
// a second entry of one name, an entry without "=", an empty entry, bytes that are not
// UTF-8. The second stage passes the same entries on.
func TestInheritsEntries(t *testing.T) {
	cat := testutil.Must(exec.LookPath("cat"))
	env := []string{"A=1", "B", "A=2", "", "=x", "A=1", "C=caf\xe9", "PATH=/bin", "PATH=/none", "LAMEDUCK_B", "GOGC=1", "GOGC=2", "LAST="}
	want := startedAs(t, cat, env, "cat", "/proc/self/environ")
	if want != strings.Join(env, "\x00")+"\x00" {
		t.Fatalf("the test itself passed %q", want)
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
			if got, want := startedAs(t, binary, []string{"PATH=/usr/bin:/bin"}, call...), strings.Join(args, "|")+"|"; got != want {
				t.Errorf("%s %q:\n got %q\nwant %q", name, dashes, got, want)
			}
		}
	}
}

// TestInheritsSignals: what was blocked and ignored still is, and nothing else.
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
		{0, set(32)}, // as posix_spawn(3) leaves it, and 33, which Go's runtime takes
		{all.Without(set(33)), all.Without(set(33))},
	} {
		// Our own second stage sets them; what comes of it is read from /proc.
		stage := fmt.Sprintf(`exec -a lameduck-stage %s 99 0 %x %x "$@"`, binary, uint64(c.blocked), uint64(c.ignored))
		as := func(words ...string) []string { return append([]string{"bash", "-c", stage, "bash"}, words...) }
		without := signals.FindAllString(commandOutput(t, nil, as("cat", "/proc/self/status")...), -1)
		with := signals.FindAllString(commandOutput(t, nil, as(binary, "cat", "/proc/self/status")...), -1)
		if !slices.Equal(with, without) || len(with) != 2 {
			t.Errorf("without: %q\nwith:    %q", without, with)
		}
		if got, want := parseSignalSet(t, without[0])|parseSignalSet(t, without[1]), c.blocked|c.ignored; got.Without(set(32)) != want.Without(set(32)) {
			t.Errorf("the test itself set %q", without)
		}
	}
}

// hexOf is the set in a line of /proc/PID/status.
func parseSignalSet(t *testing.T, line string) sig.Set {
	t.Helper()
	bits, err := strconv.ParseUint(strings.Fields(line)[1], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return sig.Set(bits)
}

// TestSecondStageFails: what cannot be started is told alike.
func TestSecondStageFails(t *testing.T) {
	needs(t, "bash")
	for command, want := range map[string]struct {
		code int
		says string
	}{
		"/no/such":    {127, "no such file"},
		"/etc/passwd": {126, "permission denied"},
	} {
		cmd := exec.Command("bash", "-c", "trap '' INT; exec "+binary+" "+command)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != want.code || !strings.Contains(string(out), want.says) || strings.Count(string(out), "\n") != 1 {
			t.Errorf("%s: %d, %s", command, code, out)
		}
	}
}

// TestSecondStageBare: the second stage needs nothing of the file system but the command.
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
		t.Errorf("%v: %s", err, out)
	}
}

// TestKeepsNothing: lameduck itself sits in /, and holds none of the descriptors
// that it passed on.
func TestKeepsNothing(t *testing.T) {
	needs(t, "bash", "nsenter")
	b := boot(t, nil, "bash", "-c", "exec 7</dev/zero; cd /tmp; exec "+binary+" --log-level=error bash -c 'echo $PPID; read end'")
	pid := b.out.wait(t, "").text
	if _, err := strconv.Atoi(pid); err != nil {
		t.Fatal(err)
	}
	script := `readlink /proc/` + pid + `/cwd; ls -l /proc/` + pid + `/fd | sed -n 's/.*-> //p' | sort -u`
	// PID 1 is a lameduck too; ask in its PID namespace.
	out := commandOutput(t, nil, "nsenter", "-t", strconv.Itoa(b.cmd.Process.Pid), "-p", "-m", "sh", "-c", script)
	if !strings.HasPrefix(out, "/\n") || strings.Contains(out, "/dev/zero") || !strings.Contains(out, "eventpoll") {
		t.Errorf("it holds:\n%s", out)
	}
	b.sendLine("end")
	b.wantExit(0)
}

// TestLeavesDirectoryFirst: lameduck is in / before it forks the command, so that the
// command cannot see it anywhere else. Only where the path of the directory does not
// lead back to it, / comes after the fork.
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
			t.Errorf("%s: %s, want %s", script, got, want)
		}
	}
}

// TestInheritsDirectory: a relative program and a directory that has no path work as
// without lameduck, and $0 of a script is not changed.
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

// TestPIDVariables: sockets and the watchdog of systemd are announced to the command
// where they were announced to lameduck; what is announced to another process stays.
func TestPIDVariables(t *testing.T) {
	needs(t, "bash")
	for _, name := range []string{"LISTEN_PID", "WATCHDOG_PID"} {
		ask := `export ` + name + `=$$; exec ` + binary + ` bash -c 'echo $` + name + ` $$'`
		if out := strings.Fields(commandOutput(t, nil, "bash", "-c", ask)); len(out) != 2 || out[0] != out[1] {
			t.Errorf("%s and the command's pid: %v", name, out)
		}
		if out := commandOutput(t, []string{name + "=1"}, binary, "sh", "-c", "echo $"+name); out != "1\n" {
			t.Errorf("another's %s became %s", name, out)
		}
		hook := `export ` + name + `=$$; exec ` + binary + ` -e 143 --delay=0.1 --grace-period=9 --on-stop='sh -c "echo $` + name + ` $$"' sh -c 'kill $PPID; exec sleep 9' 2>/dev/null`
		if out := strings.Fields(commandOutput(t, nil, "bash", "-c", hook)); len(out) != 2 || out[0] == out[1] {
			t.Errorf("%s and the pid of --on-stop: %v", name, out)
		}
	}
}

// TestSecondStagePoor: with too few descriptors the start fails, rather than losing what
// the command is to inherit; without ppoll(2) the start does not wait for long.
func TestSecondStagePoor(t *testing.T) {
	needs(t, "bash")
	cmd := exec.Command("bash", "-c", "trap '' INT; ulimit -n 8; exec "+binary+" true")
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 125 || !strings.Contains(string(out), "too many open files") {
		t.Errorf("with 8 descriptors: %d, %s", code, out)
	}
	b := bootStage(t, fmt.Sprintf("stage:ignore=USR2,deny=%d:%d", unix.SYS_PPOLL, int(unix.EPERM)), nil, "true")
	b.wantExit(0)
	if took := time.Since(b.start); took > 8*time.Second { // 10 s are for a stage that hangs
		t.Errorf("without ppoll the start takes %v", took)
	}
}

// TestClosedStreams: standard streams that are closed become /dev/null.
func TestClosedStreams(t *testing.T) {
	needs(t, "bash")
	stderr := filepath.Join(t.TempDir(), "said")
	for _, closed := range []string{"<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-"} {
		text := fmt.Sprintf(`%s sh -c 'for i in 0 1 2; do readlink /proc/self/fd/$i; done >%s; exit 5' %s`, binary, stderr, closed)
		cmd := exec.Command("bash", "-c", text)
		cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != 5 {
			t.Errorf("%s: left with %d", closed, code)
		}
		if text, _ := os.ReadFile(stderr); strings.Count(string(text), "\n") != 3 {
			t.Errorf("%s: %s", closed, text)
		}
	}
}
