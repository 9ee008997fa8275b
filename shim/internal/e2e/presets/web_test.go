package presets_test

import (
	"fmt"
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
	tomcat       = "/usr/share/tomcat10/bin/catalina.sh"
)

// webCases are web servers that are stopped while a request is in flight, each configured to
// call the backend before a reply. That is "cut" where the preset cannot save the request,
// "held" where a hold saves it, and "running" where the server survives the preset's signal.
const webCases = `
	case              | preset   | files   | needs    | that        | code | command
	haproxy           | haproxy  | haproxy |          |             | 0    | haproxy -db -f DIR/conf
	haproxy-master    | haproxy  | haproxy |          |             | 0    | haproxy -W -db -f DIR/conf
	nginx             | nginx    | nginx   |          |             | 0    | nginx -c DIR/conf -g 'daemon off;'
	httpd             | httpd    | httpd   |          |             | 0    | apache2 -DFOREGROUND -f DIR/conf
	php-fpm           | php-fpm  | php     |          |             | 0    | PHP -R -F -y DIR/conf
	php-fpm-unset     | php-fpm  | php     |          | cut held    | 0    | PHP -R -F -y DIR/conf-unset
	uwsgi             | uwsgi    | python  | python3  |             | 0    | UWSGI '--hook-master-start=unix_signal:15 gracefully_kill_them_all'
	uwsgi-die-on-term | uwsgi    | python  | python3  | cut         | 0    | UWSGI --die-on-term
	uwsgi-bare        | uwsgi    | python  | python3  | cut running | 0    | UWSGI
	gunicorn          | gunicorn | python  |          |             | 0    | gunicorn --chdir DIR -b 127.0.0.1:PORT app
	uvicorn           | uvicorn  | python  |          |             | 0    | uvicorn --app-dir DIR --port PORT asgi:app
	uvicorn-workers   | uvicorn  | python  |          |             | 0    | uvicorn --app-dir DIR --port PORT --workers 2 asgi:app
	hypercorn         | hypercorn | python |          |             | 0    | env PYTHONPATH=DIR hypercorn --bind 127.0.0.1:PORT asgi:app
	hypercorn-brief   | hypercorn | python |          | cut held    | 0    | env PYTHONPATH=DIR hypercorn --graceful-timeout 1 --bind 127.0.0.1:PORT asgi:app
	unicorn           | unicorn  | ruby    |          |             | 0    | unicorn -l 127.0.0.1:PORT DIR/config.ru
	puma              | puma     | ruby    |          |             | 0    | puma -b tcp://127.0.0.1:PORT DIR/config.ru
	caddy             | caddy    | caddy   |          |             | 0    | caddy run --config DIR/Caddyfile
	go                | go       |         |          |             | 0    | SELF helper slow-web PORT BACKEND graceful
	go-bare           | go       |         |          | cut         | 143  | SELF helper slow-web PORT BACKEND
	varnish           | varnish  | varnish | gcc      | cut held    | 0    | varnishd -F -j none -a 127.0.0.1:PORT -b 127.0.0.1:BACKEND -n DIR/cwd
	node              | node     | node    |          |             | 0    | node DIR/server.js
	node-bare         | node     | node    |          | cut held    | 143  | node DIR/bare.js
	java              | java     | java    | compiler |             | 0    | JAVA hook
	java-bare         | java     | java    | compiler | cut         | 0    | JAVA
	tomcat            | tomcat   | tomcat  | tomcat   |             | 0    | env CATALINA_BASE=DIR JAVA_OPTS=-XX:TieredStopAtLevel=1 TOMCAT run
`

// longer are the words that webCases abbreviate.
var longer = strings.NewReplacer("PHP", phpFPM, "TOMCAT", tomcat, "JAVA ",
	"java -Xshare:auto -XX:TieredStopAtLevel=1 -cp DIR Slow ",
	"UWSGI", "uwsgi --plugin=python3 --http-socket=127.0.0.1:PORT --master --processes=1 --chdir=DIR --wsgi=app")

// needed are patterns of files beside the server.
var needed = map[string]string{"": "/", "python3": "/usr/lib/uwsgi/plugins/python3*_plugin.so",
	"gcc": "/usr/bin/gcc", "compiler": javaCompiler, "tomcat": tomcat}

// TestPresetsWeb stops real web servers with their presets, by TERM and by the stop signal of
// the server's image: the request in flight goes on to its end. Without the preset TERM cuts
// the request.
func TestPresetsWeb(t *testing.T) {
	for _, w := range box.Table(webCases) {
		t.Run(w["case"], func(t *testing.T) {
			t.Parallel()
			command := longer.Replace(w["command"] + " ")
			if program, _, _ := strings.Cut(command, " "); program != "SELF" {
				box.Needs(t, program)
			}
			if found, _ := filepath.Glob(needed[w["needs"]]); len(found) == 0 {
				t.Skipf("there is no %s", needed[w["needs"]])
			}
			is := func(word string) bool { return strings.Contains(w["that"], word) }
			p := named(t, w["preset"])
			boot := func(flags string) (*box.Box, *inFlight) {
				s := newSite(t, w["files"])
				if w["files"] == "java" {
					compileJava(s)
				}
				os.Mkdir(s.dir+"/cwd", 0o755)
				b := s.boot(flags, command)
				if w["case"] == "haproxy-master" {
					awaitMaster(b)
				}
				if w["files"] == "php" {
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
				if is("cut") {
					f.wantEnd(false)
				} else {
					f.wantFinished()
				}
				if is("running") {
					box.AwaitPort(t, f.addr(), true)
					b.Signal(sig.INT)
				}
				b.WantExit(testutil.Must(strconv.Atoi(w["code"])))
			}
			if p.Schedule != "TERM" {
				b, f := boot("")
				b.Stop()
				f.wantEnd(false)
				close(f.released)
				b.WaitExit()
			}
			if is("held") {
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
