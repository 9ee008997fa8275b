package presets_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// phpFPM is the installed php-fpm; Debian's name includes the version.
var phpFPM = func() string {
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin"} {
		if found, _ := filepath.Glob(dir + "/php-fpm*"); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	return "php-fpm"
}()

const (
	javaCompiler = "/usr/share/java/eclipse-jdt-core.jar"
	uwsgi        = "uwsgi --plugin=python3 --http-socket=127.0.0.1:PORT --master --processes=1 --chdir=DIR --wsgi=app"
	uwsgiPython  = "/usr/lib/uwsgi/plugins/python3*_plugin.so"
	java         = "java -Xshare:auto -XX:TieredStopAtLevel=1 -cp DIR Slow"
	tomcat       = "/usr/share/tomcat10/bin/catalina.sh"
)

// webCases are web servers that are stopped while a request is in flight, each configured to
// call the backend before a reply.
var webCases = map[string]struct {
	preset, files, command string
	needs                  string // a pattern of a file
	cut                    bool   // the preset cannot save the request
	held                   bool   // a hold saves a request that the preset cuts
	running                bool   // the server survives the preset's signal
	code                   int    // with the preset
}{
	"haproxy":           {preset: "haproxy", files: "haproxy", command: "haproxy -db -f DIR/conf"},
	"haproxy-master":    {preset: "haproxy", files: "haproxy", command: "haproxy -W -db -f DIR/conf"}, // as the official image starts it
	"nginx":             {preset: "nginx", files: "nginx", command: "nginx -c DIR/conf -g 'daemon off;'"},
	"httpd":             {preset: "httpd", files: "httpd", command: "apache2 -DFOREGROUND -f DIR/conf"},
	"php-fpm":           {preset: "php-fpm", files: "php", command: phpFPM + " -R -F -y DIR/conf"},
	"php-fpm-unset":     {preset: "php-fpm", files: "php", command: phpFPM + " -R -F -y DIR/conf-unset", cut: true, held: true}, // without process_control_timeout
	"uwsgi":             {preset: "uwsgi", files: "python", command: uwsgi + " '--hook-master-start=unix_signal:15 gracefully_kill_them_all'", needs: uwsgiPython},
	"uwsgi-die-on-term": {preset: "uwsgi", files: "python", command: uwsgi + " --die-on-term", needs: uwsgiPython, cut: true},
	"uwsgi-bare":        {preset: "uwsgi", files: "python", command: uwsgi, needs: uwsgiPython, cut: true, running: true}, // TERM reloads
	"gunicorn":          {preset: "gunicorn", files: "python", command: "gunicorn --chdir DIR -b 127.0.0.1:PORT app"},
	"unicorn":           {preset: "unicorn", files: "ruby", command: "unicorn -l 127.0.0.1:PORT DIR/config.ru"},
	"puma":              {preset: "puma", files: "ruby", command: "puma -b tcp://127.0.0.1:PORT DIR/config.ru"},
	"caddy":             {preset: "caddy", files: "caddy", command: "caddy run --config DIR/Caddyfile"},
	"go":                {preset: "go", command: "SELF helper slow-web PORT BACKEND graceful"},
	"go-bare":           {preset: "go", command: "SELF helper slow-web PORT BACKEND", cut: true, code: 143}, // without a handler
	"varnish":           {preset: "varnish", command: "varnishd -F -j none -a 127.0.0.1:PORT -b 127.0.0.1:BACKEND -n DIR/cwd", needs: "/usr/bin/gcc", cut: true, held: true},
	"node":              {preset: "node", files: "node", command: "node DIR/server.js"},
	"node-bare":         {preset: "node", files: "node", command: "node DIR/bare.js", cut: true, held: true, code: 143}, // without a handler
	"java":              {preset: "java", files: "java", command: java + " hook", needs: javaCompiler},
	"java-bare":         {preset: "java", files: "java", command: java, needs: javaCompiler, cut: true}, // without a shutdown hook
	"tomcat":            {preset: "tomcat", files: "tomcat", command: "env CATALINA_BASE=DIR JAVA_OPTS=-XX:TieredStopAtLevel=1 " + tomcat + " run", needs: tomcat},
}

// TestPresetsWeb stops real web servers with their presets, by TERM and by the stop signal of
// the server's image: the request in flight goes on to its end. Without the preset TERM cuts
// the request.
func TestPresetsWeb(t *testing.T) {
	for name, w := range webCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if program, _, _ := strings.Cut(w.command, " "); program != "SELF" {
				box.Needs(t, program)
			}
			if found, _ := filepath.Glob(w.needs); len(found) == 0 && w.needs != "" {
				t.Skipf("there is no %s", w.needs)
			}
			p := named(t, w.preset)
			boot := func(flags string) (*box.Box, *inFlight) {
				s := newSite(t, w.files)
				if w.files == "java" {
					compileJava(s)
				}
				if w.files == "" {
					os.Mkdir(s.dir+"/cwd", 0o755)
				}
				b := s.boot(flags, w.command)
				if name == "haproxy-master" {
					awaitMaster(b)
				}
				if w.files == "php" {
					return b, s.request(fastCGI)
				}
				return b, s.request(get)
			}
			first, _, _ := strings.Cut(p.Schedule, "/")
			for _, trigger := range append(p.StopSignals, sig.TERM) {
				b, f := boot("--delay=0.1 --log-level=debug --preset=" + p.Name)
				wantRecognized(b, p.Name)
				b.Signal(trigger)
				b.Err.Wait("sending " + first + " to the command")
				if w.cut {
					f.wantEnd(false)
				} else {
					f.wantFinished()
				}
				if w.running {
					box.AwaitPort(t, f.addr(), true)
					b.Signal(sig.INT)
				}
				b.WantExit(w.code)
			}
			if p.Schedule != "TERM" {
				b, f := boot("")
				b.Stop()
				f.wantEnd(false)
				close(f.released)
				b.WaitExit()
			}
			if w.held {
				b, f := boot("--until=quiet --quiet-for=0.3 --grace-period=30 --preset=" + p.Name)
				b.Trigger()
				f.wantFinished()
				b.WaitExit()
			}
		})
	}
}

// compileJava compiles Slow.java. Tomcat brings a compiler along, so a Java runtime without
// the JDK is enough.
func compileJava(s *site) {
	compile := exec.Command("java", "-cp", javaCompiler, "org.eclipse.jdt.internal.compiler.batch.Main",
		"-17", "-proc:none", "-nowarn", s.dir+"/Slow.java")
	if output, err := compile.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, output)
	}
}

// awaitMaster waits until HAProxy's master has executed itself again to wait for its worker.
// The worker serves before that, and the master loses signals that arrive in between. Since
// version 3.1 HAProxy does without the second execution, and awaitMaster gives up after 3 s.
func awaitMaster(b *box.Box) {
	pid := b.Child()
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if strings.Contains(string(env), "HAPROXY_MWORKER_WAIT_ONLY=1") && box.Signals(pid, "SigBlk") == 0 {
			return
		}
	}
}
