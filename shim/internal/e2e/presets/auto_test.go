package presets_test

import (
	"os"
	"os/exec"
	"testing"

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
	for _, c := range box.Table(`
		case        | server  | script                    | init | trigger | signal
		nginx       | nginx   | exec $SERVER              |      | TERM    | QUIT
		nginx, QUIT | nginx   | exec $SERVER              |      | QUIT    | QUIT
		haproxy     | haproxy | exec sh -c 'exec $SERVER' |      | USR1    | USR1
		in the hold | nginx   | read go; exec $SERVER     |      | TERM    | QUIT
		as tini     | nginx   | exec $SERVER              | tini | TERM    | QUIT
	`) {
		t.Run(c["case"], func(t *testing.T) {
			t.Parallel()
			box.Needs(t, c["server"])
			s := newSite(t, "load-"+c["server"])
			start := map[string]string{"nginx": "nginx -e stderr -c DIR/conf",
				"haproxy": "haproxy -db -f DIR/conf"}[c["server"]]
			env := []string{"LAMEDUCK_PRESET=auto", "LAMEDUCK_DELAY=1", "LAMEDUCK_GRACE_PERIOD=30", "SERVER=" + s.expand(start)}
			setup := box.Setup{Env: env}
			if c["init"] != "" {
				setup.Init = tini
			}
			b := setup.Boot(t, "", "sh", "-c", "echo ready; "+c["script"])
			b.Ready()
			if c["case"] == "in the hold" {
				b.Trigger()
				b.Send("go")
				box.AwaitPort(t, s.addr(), true)
			} else {
				box.AwaitPort(t, s.addr(), true)
				b.Signal(testutil.Must(sig.Parse(c["trigger"])))
			}
			b.WantExit(0)
			if r := b.Report(); r.Trigger != c["trigger"] || r.Signals() != c["signal"] {
				t.Errorf("report %+v, want %s", r, c["signal"])
			}
		})
	}
}

// TestAutoUnreadable: where /proc/PID/exe may not be read, the command line identifies the server.
func TestAutoUnreadable(t *testing.T) {
	t.Parallel()
	box.Needs(t, "haproxy")
	s := newSite(t, "load-haproxy")
	dir := testutil.Must(os.MkdirTemp("", "auto"))
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	for name, path := range map[string]string{"conf": s.dir + "/conf",
		"haproxy": testutil.Must(exec.LookPath("haproxy"))} {
		testutil.Must(0, os.WriteFile(dir+"/"+name, testutil.Must(os.ReadFile(path)), 0o755))
	}
	os.Chmod(dir+"/haproxy", 0o711) // executable, not readable
	b := box.Setup{Faults: "uid=65534"}.Boot(t, "--preset=auto --delay=0.5 --grace-period=30", dir+"/haproxy", "-db",
		"-f", dir+"/conf")
	box.AwaitPort(t, s.addr(), true)
	b.Stop()
	b.WantExit(0)
	if r := b.Report(); r.Signals() != "USR1" {
		t.Errorf("report %+v, want USR1", r)
	}
}
