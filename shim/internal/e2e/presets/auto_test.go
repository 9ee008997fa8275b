package presets_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestAuto stops each server with the signal that the server expects, however late a script
// has executed the server, and under another init's name. What wins over auto, the golden
// scripts show.
func TestAuto(t *testing.T) {
	tini := t.TempDir() + "/tini"
	testutil.Must(0, os.Symlink(box.Binary, tini))
	for name, c := range map[string]struct {
		server, script string
		init           string
		trigger        sig.Signal
		signal         string
	}{
		"nginx":       {"nginx", "exec $SERVER", "", sig.TERM, "QUIT"},
		"nginx, QUIT": {"nginx", "exec $SERVER", "", sig.QUIT, "QUIT"},
		"haproxy":     {"haproxy", "exec sh -c 'exec $SERVER'", "", sig.USR1, "USR1"},
		"in the hold": {"nginx", "read go; exec $SERVER", "", sig.TERM, "QUIT"},
		"as tini":     {"nginx", "exec $SERVER", tini, sig.TERM, "QUIT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box.Needs(t, c.server)
			s := newSite(t, "load-"+c.server)
			start := map[string]string{"nginx": "nginx -e stderr -c DIR/conf", "haproxy": "haproxy -db -f DIR/conf"}[c.server]
			env := []string{"LAMEDUCK_PRESET=auto", "LAMEDUCK_DELAY=1", "LAMEDUCK_GRACE_PERIOD=30", "SERVER=" + s.expand(start)}
			b := box.Setup{Env: env, Init: c.init}.Boot(t, "", "sh", "-c", "echo ready; "+c.script)
			b.Ready()
			if name == "in the hold" {
				b.Trigger()
				b.Send("go")
				box.AwaitPort(t, s.addr(), true)
			} else {
				box.AwaitPort(t, s.addr(), true)
				b.Signal(c.trigger)
			}
			b.WantExit(0)
			if r := b.Report(); r.Trigger != c.trigger.String() || r.Signals() != c.signal {
				t.Errorf("report %+v, want %s", r, c.signal)
			}
		})
	}
}

// TestAutoScript: a script that executes no server gets the signals unchanged, and only TERM
// starts a hold.
func TestAutoScript(t *testing.T) {
	t.Parallel()
	b := box.Catch(t, "--preset=auto -d 1")
	want := []string{"ready"}
	for _, s := range []sig.Signal{sig.QUIT, sig.USR1, sig.WINCH, sig.INT, sig.HUP, sig.RTMin + 3} { // stop signals of some preset
		b.Signal(s)
		want = append(want, "got "+s.String())
		b.Out.WaitNth(len(want), "")
	}
	b.Out.Want(want...)
	b.WantHold(b.Stop(), time.Second, "elapsed")
}

// TestAutoUnreadable: where /proc/PID/exe may not be read, the command line identifies the server.
func TestAutoUnreadable(t *testing.T) {
	t.Parallel()
	box.Needs(t, "haproxy")
	s := newSite(t, "load-haproxy")
	dir := testutil.Must(os.MkdirTemp("", "auto"))
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	for name, path := range map[string]string{"conf": s.dir + "/conf", "haproxy": testutil.Must(exec.LookPath("haproxy"))} {
		testutil.Must(0, os.WriteFile(dir+"/"+name, testutil.Must(os.ReadFile(path)), 0o755))
	}
	os.Chmod(dir+"/haproxy", 0o711) // executable, not readable
	b := box.Setup{Faults: "uid=65534"}.Boot(t, "--preset=auto --delay=0.5 --grace-period=30", dir+"/haproxy", "-db", "-f", dir+"/conf")
	box.AwaitPort(t, s.addr(), true)
	b.Stop()
	b.WantExit(0)
	if r := b.Report(); r.Signals() != "USR1" {
		t.Errorf("report %+v, want USR1", r)
	}
}

// TestPresetWinch: WINCH, the stop signal of httpd, starts no hold on a terminal, where
// WINCH means a new window size.
func TestPresetWinch(t *testing.T) {
	t.Parallel()
	s := box.OnTerminal(t, true, box.Lameduck("--preset=httpd --delay=1", box.Helper("catch")...)...)
	s.WaitFor("ready")
	pty.Setsize(s.TTY, &pty.Winsize{Rows: 30, Cols: 100})
	s.WaitFor("got WINCH")
	s.Type("exit 3\n")
	s.WantExit(3)
	if s.Count("holding") > 0 {
		t.Error("WINCH started a hold")
	}
	b := box.Catch(t, "--preset=httpd --delay=1")
	b.Signal(sig.WINCH)
	b.Err.Wait("holding")
	b.Out.Wait("got WINCH")
	b.Exit()
}
