package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Two containers that share a volume: boxes with a directory.

// waits is a box that waits for path to go, for 19 s at most.
func bootWaitGone(t *testing.T, path string, flags ...string) *box {
	t.Helper()
	flags = append([]string{"--wait-gone=" + path, "--grace-period=30"}, flags...)
	b := boot(t, nil, append(append(flags, "--"), helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	return b
}

// lives is a box whose command is alive as long as the file at path.
func bootAlive(t *testing.T, stage, path string, flags ...string) *box {
	t.Helper()
	flags = append([]string{"--alive-file=" + path}, flags...)
	b := bootStage(t, stage, nil, append(append(flags, "--"), helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	return b
}

func absent(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", path, err)
	}
}

// TestNeighbours: both are told to stop at once, and the proxy stops after its app.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "alive")
	app := bootAlive(t, "stage", path, "--delay=1", "--grace-period=30")
	proxy := bootWaitGone(t, path)
	app.signal(sig.TERM)
	proxy.signal(sig.TERM)
	proxy.err.wait(t, "holding 0 s to 19 s until others are gone")
	app.out.wait(t, "got TERM")
	time.Sleep(time.Second) // it takes its time
	if stderr := fmt.Sprint(proxy.out.all()); stderr != "[ready]" {
		t.Errorf("the proxy was stopped before its app: %s", stderr)
	}
	start := time.Now()
	app.sendLine("exit 0")
	app.wantExit(0)
	absent(t, path)
	proxy.wantHoldSince(start, 0, "elapsed")
}

// TestNeighbourCrashes: the file that a crash leaves holds up nobody, and is taken
// over at the next start.
func TestNeighbourCrashes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "alive")
	app := bootAlive(t, "stage", path)
	proxy := bootWaitGone(t, path)
	proxy.signal(sig.TERM)
	proxy.err.wait(t, "until others are gone")
	start := time.Now()
	app.signal(sig.KILL)
	proxy.wantHoldSince(start, 0, "elapsed")
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the crash has left nothing: %v", err)
	}
	app.waitExit()
	app = bootAlive(t, "stage", path)
	app.sendLine("exit 0")
	app.wantExit(0)
	absent(t, path)
}

// TestWaitGone: what there may be in place of the file of an app that runs.
func TestWaitGone(t *testing.T) {
	for name, c := range map[string]struct {
		put    func(path string)
		hold   time.Duration
		reason string
		flag   string
	}{
		"nothing":     {func(string) {}, 0, "elapsed", ""},
		"no folder":   {func(path string) { os.Remove(filepath.Dir(path)) }, 0, "elapsed", ""},
		"stale":       {func(path string) { os.WriteFile(path, []byte("lameduck alive 1\n"), 0o644) }, 0, "elapsed", ""},
		"foreign":     {func(path string) { os.WriteFile(path, []byte("1234\n"), 0o644) }, 2 * time.Second, "ceiling", maxDelay2},
		"folder":      {func(path string) { os.Mkdir(path, 0o755) }, 2 * time.Second, "ceiling", maxDelay2},
		"fifo":        {func(path string) { unix.Mkfifo(path, 0o644) }, 2 * time.Second, "ceiling", maxDelay2},
		"dangling":    {func(path string) { os.Symlink("nowhere", path) }, 0, "elapsed", ""},
		"floor kept":  {func(string) {}, time.Second, "elapsed", "--delay=1"},
		"and silence": {func(string) {}, 0, "no_listener", "--until=quiet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "in", "alive")
			os.Mkdir(filepath.Dir(path), 0o755)
			c.put(path)
			flags := strings.Fields(c.flag)
			bootWaitGone(t, path, flags...).wantHold(c.hold, c.reason)
		})
	}
}

const maxDelay2 = "--max-delay=2"

// TestWaitGoneSocket: a neighbour that only has a socket is waited for too.
func TestWaitGoneSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "socket")
	socket, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	b := bootWaitGone(t, path)
	b.signal(sig.TERM)
	b.err.wait(t, "until others are gone")
	time.Sleep(time.Second)
	if stderr := fmt.Sprint(b.out.all()); stderr != "[ready]" {
		t.Errorf("it was stopped before: %s", stderr)
	}
	start := time.Now()
	socket.Close()
	b.wantHoldSince(start, 0, "elapsed")
}

// TestAliveFileMode: others can read it, whatever the umask and whoever we are.
func TestAliveFileMode(t *testing.T) {
	for _, stage := range []string{"stage", "stage:uid=65534"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			if stage != "stage" && !isRoot() {
				t.Skip("only root can change its uid")
			}
			dir := testutil.Must(os.MkdirTemp("", "alive"))
			t.Cleanup(func() { os.RemoveAll(dir) })
			os.Chmod(dir, 0o777)
			path := dir + "/alive"
			b := bootStage(t, stage, nil, append([]string{"sh", "-c", `umask 077; exec "$@"`, "sh", binary, "--alive-file=" + path, "--"}, helperCommand("catch")...)...)
			b.out.wait(t, "ready")
			if info := testutil.Must(os.Stat(path)); info.Mode() != 0o644 {
				t.Errorf("its mode is %v", info.Mode())
			}
			b.sendLine("exit 0")
			b.wantExit(0)
			absent(t, path)
		})
	}
}

// TestAliveFileGone: it is gone at every end, and at one that was no start.
func TestAliveFileGone(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(dir+"/plain", nil, 0o644)
	taken := testutil.Must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { taken.Close() })
	for name, c := range map[string]struct {
		words string
		code  int
	}{
		"well":      {"-- true", 0},
		"badly":     {"-- false", 1},
		"killed":    {"-- sh -c kill~-KILL~$$", 137},
		"missing":   {"-- /no/such/program", 127},
		"refused":   {"-- " + dir + "/plain", 126},
		"port":      {"--health=" + taken.Addr().String() + " -- echo started", 125},
		"lingering": {"--linger=1 -- sh -c sleep~1000~&", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "alive")
			var words []string
			for word := range strings.FieldsSeq("--alive-file=" + path + " " + c.words) {
				words = append(words, strings.ReplaceAll(word, "~", " "))
			}
			b := boot(t, nil, words...)
			b.wantExit(c.code)
			absent(t, path)
			if c.code == 125 {
				if stderr, out := fmt.Sprint(b.err.all()), b.out.all(); len(b.err.all()) != 1 || len(out) > 0 || !strings.Contains(stderr, "--health="+taken.Addr().String()+": cannot listen on") {
					t.Errorf("stderr: %s, and %v", stderr, out)
				}
			}
		})
	}
}

// TestAliveFileRefused: where it cannot be made nothing is started.
func TestAliveFileRefused(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(dir+"/foreign", []byte("1234\n"), 0o644)
	for name, c := range map[string]struct{ stage, path, message string }{
		"read-only": {"stage:read-only", "/alive-of-a-test", "read-only file system"},
		"foreign":   {"stage", dir + "/foreign", "it is somebody else's file: give another path"},
		"folder":    {"stage", dir, "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			b := bootStage(t, c.stage, nil, "--alive-file="+c.path, "--", "echo", "started")
			b.wantExit(125)
			if stderr := b.err.all(); len(stderr) != 1 || !strings.Contains(stderr[0].text, "--alive-file="+c.path+": ") || !strings.Contains(stderr[0].text, c.message) || len(b.out.all()) > 0 {
				t.Errorf("stderr: %v, and %v", stderr, b.out.all())
			}
		})
	}
	if text := testutil.Must(os.ReadFile(dir + "/foreign")); string(text) != "1234\n" {
		t.Errorf("it became %q", text)
	}
	path := dir + "/alive"
	first := bootAlive(t, "stage", path)
	second := boot(t, nil, "--alive-file="+path, "--", "echo", "started")
	second.wantExit(125)
	if stderr := fmt.Sprint(second.err.all()); !strings.Contains(stderr, "another lameduck that runs has it") {
		t.Errorf("stderr: %s", stderr)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the second one took it away: %v", err)
	}
	first.sendLine("exit 0")
	first.wantExit(0)
}

// TestNeighboursOverTCP: a proxy that its app talks to over TCP needs no file: until
// the app has gone, its connections are there.
func TestNeighboursOverTCP(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	proxy := bootServer(t, "stage", "drained", "--quiet-for=0.5")
	app := boot(t, nil, "--delay=2", "--", "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/"+proxy.port+"; echo hello >&3; read answer <&3; echo $answer; exec sleep 1000")
	app.out.wait(t, "ok")
	start := time.Now()
	app.signal(sig.TERM)
	proxy.signal(sig.TERM)
	app.wantExit(143)
	proxy.wantHoldSince(start, 2*time.Second, "drained") // as long as its app took to go
}

// TestAliveFileEarly: a stop before the start leaves no file, and nobody listening.
func TestAliveFileEarly(t *testing.T) {
	runtime.LockOSThread() // see TestEarlySignal
	defer runtime.UnlockOSThread()
	var usr1, before unix.Sigset_t
	usr1.Val[0] = 1 << (unix.SIGUSR1 - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &usr1, &before); err != nil {
		t.Fatal(err)
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	path := filepath.Join(t.TempDir(), "alive")
	b := bootStage(t, "stage-early", nil, "--alive-file="+path, "--on-stop=echo hook", "-d", "1", "-r", "TERM:USR1", "--", "echo", "started")
	b.wantExit(138)
	absent(t, path)
	if out := b.out.all(); len(out) > 0 {
		t.Errorf("it ran: %v", out)
	}
}

// TestPoorNeighbours: all of it at once, in a place that gives a program little.
func TestPoorNeighbours(t *testing.T) {
	for name, stage := range map[string]string{
		"no privileges": "uid=65534", "no /proc": "no-proc,uid=65534", "seccomp": "seccomp", "no netlink": "no-netlink",
		"all of it": "no-proc,no-env,ignore=CHLD,uid=65534,seccomp",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(stage, "uid") && !isRoot() {
				t.Skip("only root can change its uid")
			}
			dir := testutil.Must(os.MkdirTemp("", "alive"))
			t.Cleanup(func() { os.RemoveAll(dir) })
			os.Chmod(dir, 0o777)
			url := fmt.Sprintf("127.0.0.1:%d", freePort())
			flags := []string{"-d", "1", "--grace-period=30", "--alive-file=" + dir + "/alive", "--wait-gone=" + dir + "/none", "--on-stop=/bin/sleep 0.1",
				"--health=" + url, "--health-during=fail", "--preset=auto", "--stop-schedule=TERM/20/KILL", "--kill-after=25", "--"}
			b := bootStage(t, "stage:"+stage, nil, append(flags, trapCommand...)...)
			b.out.wait(t, "ready")
			if got := ask("http://" + url); got != "200 ok" {
				t.Errorf("while it runs: %s", got)
			}
			b.wantTermAfterHold(func() {
				testutil.Eventually(t, "checks fail", func() bool { return ask("http://"+url) == "503 stopping" })
			})
			b.wantPromptExit()
			absent(t, dir+"/alive")
			b.wantWarning("")
		})
	}
}
