package stop_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Tests of --alive-file and --wait-gone: two containers of a pod that share a volume.

func absent(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s exists, want it removed (error: %v)", path, err)
	}
}

// TestNeighbors: an app and its proxy get TERM at the same time, and the proxy's hold lasts
// until the app has ended, be it killed. The file of a killed app is taken over by the next.
func TestNeighbors(t *testing.T) {
	for _, killed := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "alive")
		app := box.Catch(t, "--delay=1 --grace-period=30 --alive-file="+path)
		proxy := box.Catch(t, "--grace-period=30 --wait-gone="+path)
		app.Stop()
		proxy.Trigger()
		app.Out.Wait("got TERM")
		proxy.Out.Want("ready")
		start := time.Now()
		if killed {
			app.Signal(sig.KILL)
			app.WaitExit()
			proxy.WantHold(start, 0, "elapsed")
			if _, err := os.Stat(path); err != nil {
				t.Errorf("no alive file is left by the crash: %v", err)
			}
			app = box.Catch(t, "--alive-file="+path)
			app.Exit()
		} else {
			app.Exit()
			proxy.WantHold(start, 0, "elapsed")
		}
		absent(t, path)
	}
}

// TestWaitGone: --wait-gone waits for files that may belong to a running app, not for stale
// or missing files.
func TestWaitGone(t *testing.T) {
	for _, c := range box.Table(`
		case        | before                              | flags         | hold | reason      | warning
		nothing     | mkdir in                            |               |      | elapsed     |
		no folder   | true                                |               |      | elapsed     | there is no directory
		stale       | mkdir in; echo lameduck alive 1 >$P |               |      | elapsed     |
		foreign     | mkdir in; echo 1234 >$P             | --max-delay=2 | 2s   | ceiling     |
		a folder    | mkdir -p $P                         | --max-delay=2 | 2s   | ceiling     | is a directory
		dangling    | mkdir in; ln -s nowhere $P          |               |      | elapsed     |
		floor kept  | mkdir in                            | --delay=1     | 1s   | elapsed     |
		and silence | mkdir in                            | --until=quiet |      | no_listener |
	`) {
		t.Run(c["case"], func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			testutil.Must(0, exec.Command("sh", "-c", "cd "+dir+"; P=in/alive; "+c["before"]).Run())
			b := box.Catch(t, "--grace-period=30 --wait-gone="+dir+"/in/alive "+c["flags"])
			b.WantHold(b.Stop(), c.Time("hold"), c["reason"])
			b.WantWarning(c["warning"])
		})
	}
}

// TestWaitGoneSocket: --wait-gone waits for a listening Unix socket too.
func TestWaitGoneSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "socket")
	socket := testutil.Must(net.Listen("unix", path))
	b := box.Catch(t, "--grace-period=30 --log-level=debug --wait-gone="+path)
	b.Trigger()
	b.Err.Wait("sample")
	b.Out.Want("ready")
	start := time.Now()
	socket.Close()
	b.WantHold(start, 0, "elapsed")
}

// TestAliveFile: the alive file is gone when the command has ended, in whatever way, and when
// the start has failed.
func TestAliveFile(t *testing.T) {
	taken := testutil.Must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { taken.Close() })
	for _, c := range box.Table(`
		case        | faults    | flags          | command                            | code
		as root     |           |                | sh -c 'grep -c . $ALIVE; exit 7'   | 7
		as a user   | uid=65534 |                | sh -c 'grep -c . $ALIVE; exit 7'   | 7
		killed      |           |                | sh -c 'kill -KILL $$'              | 137
		missing     |           |                | /no/such/program                   | 127
		refused     |           |                | /etc/passwd                        | 126
		port in use |           | --health=TAKEN | echo started                       | 125
		lingering   |           | --linger=1     | sh -c 'grep -c . $ALIVE; sleep 9&' | 0
	`) {
		t.Run(c["case"], func(t *testing.T) {
			t.Parallel()
			dir := testutil.Must(os.MkdirTemp("", "alive"))
			t.Cleanup(func() { os.RemoveAll(dir) })
			os.Chmod(dir, 0o777)
			path := dir + "/alive"
			given := "--alive-file=" + path + " " + strings.Replace(c["flags"], "TAKEN", taken.Addr().String(), 1)
			b := box.Setup{Faults: c["faults"], Env: []string{"ALIVE=" + path}}.Boot(t, given, box.Words(c["command"])...)
			b.WantExit(testutil.Must(strconv.Atoi(c["code"])))
			if strings.Contains(c["command"], "ALIVE") {
				b.Out.Want("1")
			}
			absent(t, path)
			if c["code"] == "125" {
				b.WantOneLine("cannot listen on " + taken.Addr().String() + ": address already in use")
			}
		})
	}
}

// TestFilesRefused: if the alive file or the termination log cannot be written, or belongs to
// another program, lameduck exits with 125 and does not start the command. What is refused, the
// rooms test.
func TestFilesRefused(t *testing.T) {
	foreign, path := t.TempDir()+"/foreign", t.TempDir()+"/alive"
	testutil.WriteFile(t, foreign, "1234\n")
	first := box.Catch(t, "--alive-file="+path)
	paths := strings.NewReplacer("FOREIGN", foreign, "ALIVE", path)
	for _, c := range box.Table(`
		faults    | flag                          | message
		read-only | --alive-file=/alive-of-a-test | read-only file system
		          | --alive-file=FOREIGN          | cannot overwrite a file of another program
		          | --alive-file=ALIVE            | another running lameduck holds the lock
		          | --termination-log=/proc       | is a directory
		          | --termination-log=/dev/stderr | not a regular file
	`) {
		flag := paths.Replace(c["flag"])
		b := box.Setup{Faults: c["faults"]}.Boot(t, flag+" -d 1", "echo", "started")
		b.WantExit(125)
		b.WantOneLine(flag+" (LAMEDUCK_", c["message"])
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the second lameduck removed the alive file of the first: %v", err)
	}
	first.Exit()
}
