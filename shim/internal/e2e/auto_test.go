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

// Tests of --preset=auto. Entrypoint scripts execute the server some time after their start.

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

// scriptedServer returns a site, and the flags and the command for a server that a script
// executes. SERVER in script stands for the command line of the server.
func scriptedServer(t *testing.T, server, script string, flags ...string) (*site, []string) {
	t.Helper()
	needs(t, server)
	s := newSite(t, freePort())
	s.write("nginx.conf", autoNginx)
	s.write("haproxy.cfg", strings.ReplaceAll(haproxyConfig, "%d", "PORT"))
	start := map[string]string{"nginx": "nginx -e stderr -c DIR/nginx.conf", "haproxy": "haproxy -db -f DIR/haproxy.cfg"}[server]
	path := s.write("entrypoint.sh", "#!/bin/sh\n"+strings.ReplaceAll(script, "SERVER", start)+"\n")
	return s, append(flags, "--", path)
}

// TestAuto stops each server with the signal that the server expects, however a script
// started the server. A schedule, a rewrite, an exit code and another preset win over auto.
func TestAuto(t *testing.T) {
	for name, c := range map[string]struct {
		server, script string
		flags          []string
		trigger        sig.Signal
		report         string // a regular expression
		code           int
	}{
		"nginx":          {"nginx", "sleep 0.2; exec SERVER", nil, sig.TERM, "sent QUIT", 0},
		"nginx, QUIT":    {"nginx", "sleep 0.2; exec SERVER", nil, sig.QUIT, "^lameduck: QUIT: .*held ", 0},
		"haproxy":        {"haproxy", "sleep 0.2; exec SERVER", nil, sig.TERM, "sent USR1", 0},
		"haproxy, USR1":  {"haproxy", "sleep 0.2; exec SERVER", nil, sig.USR1, "^lameduck: USR1: .*held ", 0},
		"two scripts":    {"nginx", "exec sh -c 'sleep 0.2; exec SERVER'", nil, sig.TERM, "sent QUIT", 0},
		"schedule":       {"nginx", "exec SERVER", []string{"--stop-schedule=TERM"}, sig.TERM, "sent TERM", 0},
		"rewrite":        {"nginx", "exec SERVER", []string{"--rewrite=TERM:INT"}, sig.TERM, "sent INT", 0},
		"exit code":      {"nginx", "exec SERVER", []string{"--exit-code=0:5"}, sig.TERM, "sent QUIT", 5},
		"another preset": {"nginx", "exec SERVER", []string{"--preset=gunicorn"}, sig.TERM, "sent TERM", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := append([]string{"--preset=auto", "--delay=0.5", "--grace-period=30"}, c.flags...)
			s, words := scriptedServer(t, c.server, c.script, flags...)
			b := boot(t, nil, words...)
			awaitPort(t, s.addr(), true)
			b.signal(c.trigger)
			b.wantExit(c.code)
			wantMatch(t, b.report(), c.report)
		})
	}
}

// TestAutoScript: a script that has not executed a server gets the signals unchanged. A
// server that the script executes during the hold is recognized at the end of the hold.
func TestAutoScript(t *testing.T) {
	t.Run("stays", func(t *testing.T) {
		t.Parallel()
		b := boot(t, nil, append([]string{"--preset=auto", "-d", "1", "--"}, trapCommand...)...)
		b.out.wait(t, "ready")
		b.wantStop()
	})
	t.Run("executes late", func(t *testing.T) {
		t.Parallel()
		s, words := scriptedServer(t, "nginx", "echo ready; read go; exec SERVER", "--preset=auto", "--delay=2", "--grace-period=30")
		b := boot(t, nil, words...)
		b.out.wait(t, "ready")
		b.signal(sig.TERM)
		b.err.wait(t, "holding 2 s")
		b.sendLine("go")
		awaitPort(t, s.addr(), true)
		b.wantExit(0)
		wantMatch(t, b.report(), `held 2\.\d s \(elapsed\), sent QUIT`)
	})
	t.Run("other signals", func(t *testing.T) { // stop signals of some preset
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

// TestAutoUnreadable: where /proc/PID/exe may not be read, the command line identifies the server.
func TestAutoUnreadable(t *testing.T) {
	t.Parallel()
	needs(t, "haproxy")
	if !isRoot() {
		t.Skip("needs root, to become another user")
	}
	s := newSite(t, freePort())
	dir := testutil.Must(os.MkdirTemp("", "auto"))
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	config := filepath.Join(dir, "haproxy.cfg")
	os.WriteFile(config, fmt.Appendf(nil, haproxyConfig, s.port), 0o644)
	program := filepath.Join(dir, "haproxy")
	os.WriteFile(program, testutil.Must(os.ReadFile(testutil.Must(exec.LookPath("haproxy")))), 0o711) // executable, not readable
	os.Chmod(program, 0o711)
	b := bootStage(t, "stage:uid=65534", nil, "--preset=auto", "--delay=0.5", "--grace-period=30", "--", program, "-db", "-f", config)
	awaitPort(t, s.addr(), true)
	b.signal(sig.TERM)
	b.wantExit(0)
	b.wantStderr("sent USR1")
}

// TestAutoDropin: lameduck under the name tini reads LAMEDUCK_PRESET from the environment.
func TestAutoDropin(t *testing.T) {
	t.Parallel()
	tini := filepath.Join(t.TempDir(), "tini")
	os.Symlink(binary, tini)
	s, words := scriptedServer(t, "nginx", "sleep 0.2; exec SERVER")
	b := newBox(t, "stage", []string{"LAMEDUCK_PRESET=auto", "LAMEDUCK_DELAY=0.5"}, words...)
	b.cmd.Args[3] = tini
	b.run()
	awaitPort(t, s.addr(), true)
	b.signal(sig.TERM)
	b.wantExit(0)
	b.wantStderr("sent QUIT")
}

// TestPresetWinch: WINCH, the stop signal of httpd, starts no hold on a terminal, where
// WINCH means a new window size.
func TestPresetWinch(t *testing.T) {
	t.Run("terminal", func(t *testing.T) {
		t.Parallel()
		s := catchOnTerminal(t, true, "--preset=httpd", "--delay=1")
		pty.Setsize(s.tty, &pty.Winsize{Rows: 30, Cols: 100})
		s.waitFor("got WINCH")
		s.typeText("exit 3\n")
		s.wantExit(3)
		if s.count("holding") > 0 {
			t.Error("WINCH started a hold")
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
