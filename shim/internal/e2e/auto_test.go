package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// --preset=auto, as entrypoint scripts have it: the server is executed in their own
// time.

const autoNginx = `
daemon off;
pid DIR/pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path DIR/1; proxy_temp_path DIR/2; fastcgi_temp_path DIR/3; uwsgi_temp_path DIR/4; scgi_temp_path DIR/5;
  server { listen 127.0.0.1:PORT; return 200 "served"; }
}
`

// scripted is a server that a script executes.
func scripted(t *testing.T, server, script string, flags ...string) (*site, []string) {
	t.Helper()
	needs(t, server)
	s := newSite(t, freePort())
	s.write("nginx.conf", autoNginx)
	s.write("haproxy.cfg", strings.ReplaceAll(haproxyConfig, "%d", "PORT"))
	start := map[string]string{"nginx": "nginx -e stderr -c DIR/nginx.conf", "haproxy": "haproxy -db -f DIR/haproxy.cfg"}[server]
	path := s.write("entrypoint.sh", "#!/bin/sh\n"+strings.ReplaceAll(script, "SERVER", start)+"\n")
	return s, append(flags, "--", path)
}

// TestAuto: each is stopped as it expects, however it was started; what was said
// otherwise wins.
func TestAuto(t *testing.T) {
	for name, c := range map[string]struct {
		server, script string
		flags          []string
		trigger        sig.Signal
		sent           string
		code           int
	}{
		"nginx":          {"nginx", "sleep 0.2; exec SERVER", nil, sig.TERM, "sent QUIT at", 0},
		"nginx, QUIT":    {"nginx", "sleep 0.2; exec SERVER", nil, sig.QUIT, "QUIT: held", 0},
		"haproxy":        {"haproxy", "sleep 0.2; exec SERVER", nil, sig.TERM, "sent USR1 at", 0},
		"haproxy, USR1":  {"haproxy", "sleep 0.2; exec SERVER", nil, sig.USR1, "USR1: held", 0},
		"two scripts":    {"nginx", "exec sh -c 'sleep 0.2; exec SERVER'", nil, sig.TERM, "sent QUIT at", 0},
		"schedule":       {"nginx", "exec SERVER", []string{"--stop-schedule=TERM"}, sig.TERM, "sent TERM at", 0},
		"rewrite":        {"nginx", "exec SERVER", []string{"--rewrite=TERM:INT"}, sig.TERM, "sent INT at", 0},
		"exit code":      {"nginx", "exec SERVER", []string{"--exit-code=0:5"}, sig.TERM, "sent QUIT at", 5},
		"another preset": {"nginx", "exec SERVER", []string{"--preset=gunicorn"}, sig.TERM, "sent TERM at", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := append([]string{"--preset=auto", "--delay=0.5", "--grace-period=30"}, c.flags...)
			s, words := scripted(t, c.server, c.script, flags...)
			b := boot(t, nil, words...)
			awaitPort(t, s.addr(), true)
			b.signal(c.trigger)
			b.wantExit(c.code)
			if said := fmt.Sprint(b.err.all()); !strings.Contains(said, c.sent) {
				t.Errorf("it says %s, want %s", said, c.sent)
			}
		})
	}
}

// TestAutoScript: a script that has not executed anything yet is sent what came; one
// that does so during the hold is known by its end.
func TestAutoScript(t *testing.T) {
	t.Run("stays", func(t *testing.T) {
		t.Parallel()
		b := boot(t, nil, append([]string{"--preset=auto", "-d", "1", "--"}, trapCommand...)...)
		b.out.wait(t, "ready")
		b.wantStop()
	})
	t.Run("executes late", func(t *testing.T) {
		t.Parallel()
		s, words := scripted(t, "nginx", "echo ready; read go; exec SERVER", "--preset=auto", "--delay=2", "--grace-period=30")
		b := boot(t, nil, words...)
		b.out.wait(t, "ready")
		b.signal(sig.TERM)
		b.err.wait(t, "holding 2 s")
		b.sendLine("go")
		awaitPort(t, s.addr(), true)
		b.wantExit(0)
		if said := fmt.Sprint(b.err.all()); !strings.Contains(said, "sent QUIT at +2.") {
			t.Errorf("it says %s", said)
		}
	})
	t.Run("other signals", func(t *testing.T) { // that are stop signals of some preset
		t.Parallel()
		b := boot(t, nil, append([]string{"--preset=auto", "-d", "1", "--"}, helperCommand("catch")...)...)
		b.out.wait(t, "ready")
		for i, s := range []sig.Signal{sig.QUIT, sig.USR1, sig.WINCH, sig.INT, sig.HUP, sig.RTMin + 3} {
			b.signal(s)
			b.out.waitCount(t, i+2)
		}
		b.sendLine("exit 0")
		b.wantExit(0)
	})
}

// TestAutoUnreadable: where we may not see what it executes, its command line says it.
func TestAutoUnreadable(t *testing.T) {
	t.Parallel()
	needs(t, "haproxy")
	if !isRoot() {
		t.Skip("only root can become somebody else")
	}
	s := newSite(t, freePort())
	dir := testutil.Must(os.MkdirTemp("", "auto"))
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	config := filepath.Join(dir, "haproxy.cfg")
	os.WriteFile(config, fmt.Appendf(nil, haproxyConfig, s.port), 0o644)
	program := filepath.Join(dir, "haproxy")
	os.WriteFile(program, testutil.Must(os.ReadFile(testutil.Must(exec.LookPath("haproxy")))), 0o711) // one that may not be read
	os.Chmod(program, 0o711)
	b := bootStage(t, "stage:uid=65534", nil, "--preset=auto", "--delay=0.5", "--grace-period=30", "--", program, "-db", "-f", config)
	awaitPort(t, s.addr(), true)
	b.signal(sig.TERM)
	b.wantExit(0)
	if said := fmt.Sprint(b.err.all()); !strings.Contains(said, "sent USR1 at") {
		t.Errorf("it says %s", said)
	}
}

// TestAutoDropin: an image's own tini, which is lameduck, takes it from the
// environment.
func TestAutoDropin(t *testing.T) {
	t.Parallel()
	tini := filepath.Join(t.TempDir(), "tini")
	os.Symlink(binary, tini)
	s, words := scripted(t, "nginx", "sleep 0.2; exec SERVER")
	b := newBox(t, "stage", []string{"LAMEDUCK_PRESET=auto", "LAMEDUCK_DELAY=0.5"}, words...)
	b.cmd.Args[3] = tini
	b.run()
	awaitPort(t, s.addr(), true)
	b.signal(sig.TERM)
	b.wantExit(0)
	if said := fmt.Sprint(b.err.all()); !strings.Contains(said, "sent QUIT at") {
		t.Errorf("it says %s", said)
	}
}

// TestPresetWinch: httpd's stop signal is one that terminals send for another reason;
// there it stops nothing.
func TestPresetWinch(t *testing.T) {
	t.Run("terminal", func(t *testing.T) {
		t.Parallel()
		s := catchOnTerminal(t, true, "--preset=httpd", "--delay=1")
		pty.Setsize(s.tty, &pty.Winsize{Rows: 30, Cols: 100})
		s.waitFor("got WINCH")
		s.typeText("exit 3\n")
		s.wantExit(3)
		if s.count("holding") > 0 {
			t.Error("it held")
		}
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		b := boot(t, nil, append([]string{"--preset=httpd", "--delay=1", "--"}, helperCommand("catch")...)...)
		b.out.wait(t, "ready")
		b.signal(sig.WINCH)
		b.err.wait(t, "WINCH: holding 1 s, then WINCH")
		b.out.wait(t, "got WINCH")
		b.sendLine("exit 0")
		b.wantExit(0)
	})
}
