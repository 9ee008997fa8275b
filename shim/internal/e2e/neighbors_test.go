package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Tests of --alive-file and --wait-gone: two containers of a pod that share a volume.

// bootWaitGone boots a lameduck that, when stopped, waits until path is gone, 19 s at most.
func bootWaitGone(t *testing.T, path string, flags ...string) *box {
	t.Helper()
	flags = append([]string{"--wait-gone=" + path, "--grace-period=30"}, flags...)
	b := boot(t, nil, append(append(flags, "--"), helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	return b
}

// bootAlive boots a lameduck that keeps an alive file at path.
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
		t.Errorf("%s exists, want it removed (error: %v)", path, err)
	}
}

// TestNeighbors: an app and its proxy get TERM at the same time, and the proxy's hold lasts
// until the app has ended.
func TestNeighbors(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "alive")
	app := bootAlive(t, "stage", path, "--delay=1", "--grace-period=30")
	proxy := bootWaitGone(t, path)
	app.signal(sig.TERM)
	proxy.signal(sig.TERM)
	proxy.err.wait(t, "holding up to 19 s until ")
	app.out.wait(t, "got TERM")
	time.Sleep(time.Second) // the app takes its time, and the proxy's hold must outlast the app
	if stdout := fmt.Sprint(proxy.out.all()); stdout != "[ready]" {
		t.Errorf("the proxy's hold ended before the app: %s", stdout)
	}
	start := time.Now()
	app.sendLine("exit 0")
	app.wantExit(0)
	absent(t, path)
	proxy.wantHoldSince(start, 0, "elapsed")
}

// TestNeighborCrashes: an alive file left by a crash does not delay the neighbor's stop, and
// the next start takes over the file.
func TestNeighborCrashes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "alive")
	app := bootAlive(t, "stage", path)
	proxy := bootWaitGone(t, path)
	proxy.signal(sig.TERM)
	proxy.err.wait(t, " is gone")
	start := time.Now()
	app.signal(sig.KILL)
	proxy.wantHoldSince(start, 0, "elapsed")
	if _, err := os.Stat(path); err != nil {
		t.Errorf("no alive file is left by the crash: %v", err)
	}
	app.waitExit()
	app = bootAlive(t, "stage", path)
	app.sendLine("exit 0")
	app.wantExit(0)
	absent(t, path)
}

// TestWaitGone: --wait-gone waits for files that may belong to a running app, not for stale
// or missing files.
func TestWaitGone(t *testing.T) {
	for name, c := range map[string]struct {
		setup  func(path string)
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
			c.setup(path)
			flags := strings.Fields(c.flag)
			bootWaitGone(t, path, flags...).wantHold(c.hold, c.reason)
		})
	}
}

const maxDelay2 = "--max-delay=2"

// TestWaitGoneSocket: --wait-gone waits for a listening Unix socket too.
func TestWaitGoneSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "socket")
	socket, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	b := bootWaitGone(t, path)
	b.signal(sig.TERM)
	b.err.wait(t, " is gone")
	time.Sleep(time.Second) // the socket is open for a while, and the hold must outlast the socket
	if stdout := fmt.Sprint(b.out.all()); stdout != "[ready]" {
		t.Errorf("the hold ended before the socket was closed: %s", stdout)
	}
	start := time.Now()
	socket.Close()
	b.wantHoldSince(start, 0, "elapsed")
}

// TestAliveFileMode: every user can read the alive file, under any umask and any uid.
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
				t.Errorf("mode of the alive file: %v, want 0644", info.Mode())
			}
			b.sendLine("exit 0")
			b.wantExit(0)
			absent(t, path)
		})
	}
}

// TestAliveFileGone: lameduck removes the alive file when the command has ended, in whatever
// way, and when the start has failed.
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
				b.wantOneLine("--health=" + taken.Addr().String() + " (LAMEDUCK_HEALTH): cannot listen on")
			}
		})
	}
}

// TestAliveFileRefused: if the alive file cannot be made or belongs to another program,
// lameduck exits with 125 and does not start the command.
func TestAliveFileRefused(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(dir+"/foreign", []byte("1234\n"), 0o644)
	for name, c := range map[string]struct{ stage, path, message string }{
		"read-only": {"stage:read-only", "/alive-of-a-test", "read-only file system"},
		"foreign":   {"stage", dir + "/foreign", "cannot overwrite a file of another program: give another path"},
		"folder":    {"stage", dir, "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			b := bootStage(t, c.stage, nil, "--alive-file="+c.path, "--", "echo", "started")
			b.wantExit(125)
			b.wantOneLine("--alive-file="+c.path+" (LAMEDUCK_ALIVE_FILE): ", c.message)
		})
	}
	if text := testutil.Must(os.ReadFile(dir + "/foreign")); string(text) != "1234\n" {
		t.Errorf("the other program's file has become %q", text)
	}
	path := dir + "/alive"
	first := bootAlive(t, "stage", path)
	second := boot(t, nil, "--alive-file="+path, "--", "echo", "started")
	second.wantExit(125)
	second.wantOneLine("another running lameduck holds the lock")
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the second lameduck removed the alive file of the first: %v", err)
	}
	first.sendLine("exit 0")
	first.wantExit(0)
}

// TestNeighborsOverTCP: a proxy whose app is connected over TCP needs no alive file, since
// --until=drained holds until the app's connections are closed.
func TestNeighborsOverTCP(t *testing.T) {
	needs(t, "bash")
	proxy := bootServer(t, "stage", "drained", "--quiet-for=0.5")
	app := boot(t, nil, "--delay=2", "--", "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/"+proxy.port+"; echo hello >&3; read answer <&3; echo $answer; exec sleep 1000")
	app.out.wait(t, "ok")
	start := time.Now()
	app.signal(sig.TERM)
	proxy.signal(sig.TERM)
	app.wantExit(143)
	proxy.wantHoldSince(start, 2*time.Second, "drained") // the app's own hold
}

// TestAliveFileEarly: after a stop signal before the start, no alive file is left, and
// neither the command nor --on-stop has run.
func TestAliveFileEarly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alive")
	b := bootEarlyUSR1(t, "--alive-file="+path, "--on-stop=echo ran", "-d", "1", "-r", "TERM:USR1", "--", "echo", "started")
	b.wantExit(138)
	absent(t, path)
	if out := b.out.all(); len(out) > 0 {
		t.Errorf("the command or --on-stop ran: %v", out)
	}
}

// TestPoorNeighbors: alive file, --wait-gone, --on-stop, health checks and a schedule work
// together without privileges, /proc, netlink or some system calls.
func TestPoorNeighbors(t *testing.T) {
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
				"--health=" + url, "--health-during=fail", "--preset=auto", "--stop-schedule=TERM/20/QUIT", "--kill-after=25", "--"}
			b := bootStage(t, "stage:"+stage, nil, append(flags, trapCommand...)...)
			b.out.wait(t, "ready")
			if got := getAnswer("http://" + url); got != "200 ok" {
				t.Errorf("health check before the stop: %s", got)
			}
			b.wantTermAfterHold(func() {
				testutil.Eventually(t, "health checks fail", func() bool { return getAnswer("http://"+url) == "503 stopping" })
			})
			b.wantPromptExit()
			absent(t, dir+"/alive")
			b.wantWarning("")
		})
	}
}
