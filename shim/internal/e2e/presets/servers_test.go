package presets_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// servers are stopped while a client's request is in flight; the web servers call the backend before
// a reply. "needs" are programs and patterns of files, and "first" is done before the start. The
// request is "cut" where the preset cannot save it, and the server is "running" if it survives the
// preset's signal. "hold" is the condition of a hold that saves the request, and "without" a signal
// that cuts it without the preset. "code" is the exit code with the preset, if it is not 0.
const servers = `
	case              | preset    | files     | needs                                  | client     | is          | hold    | without | code | first   | command
	haproxy           | haproxy   | haproxy   | haproxy                                | HTTP       |             |         | TERM    |      |         | haproxy -db -f DIR/conf
	haproxy-master    | haproxy   | haproxy   | haproxy                                | HTTP       |             |         | TERM    |      |         | haproxy -W -db -f DIR/conf
	nginx             | nginx     | nginx     | nginx                                  | HTTP       |             |         | TERM    |      |         | nginx -c DIR/conf -g 'daemon off;'
	httpd             | httpd     | httpd     | apache2                                | HTTP       |             |         | TERM    |      |         | apache2 -DFOREGROUND -f DIR/conf
	php-fpm           | php-fpm   | php       | /usr/sbin/php-fpm*                     | FastCGI    |             |         | TERM    |      |         | sh -c 'exec /usr/sbin/php-fpm* -R -F -y DIR/conf'
	php-fpm-unset     | php-fpm   | php       | /usr/sbin/php-fpm*                     | FastCGI    | cut         | quiet   | TERM    |      | sed -i /process_control_timeout/d DIR/conf | sh -c 'exec /usr/sbin/php-fpm* -R -F -y DIR/conf'
	uwsgi             | uwsgi     | python    | uwsgi PLUGIN                           | HTTP       |             |         |         |      |         | UWSGI '--hook-master-start=unix_signal:15 gracefully_kill_them_all'
	uwsgi-die-on-term | uwsgi     | python    | uwsgi PLUGIN                           | HTTP       | cut         |         |         |      |         | UWSGI --die-on-term
	uwsgi-bare        | uwsgi     | python    | uwsgi PLUGIN                           | HTTP       | cut running |         |         |      |         | UWSGI
	gunicorn          | gunicorn  | python    | gunicorn                               | HTTP       |             |         |         |      |         | gunicorn --chdir DIR -b 127.0.0.1:PORT app
	uvicorn           | uvicorn   | python    | uvicorn                                | HTTP       |             |         |         |      |         | uvicorn --app-dir DIR --port PORT asgi:app
	uvicorn-workers   | uvicorn   | python    | uvicorn                                | HTTP       |             |         |         |      |         | uvicorn --app-dir DIR --port PORT --workers 2 asgi:app
	hypercorn         | hypercorn | python    | hypercorn                              | HTTP       |             |         |         |      |         | env PYTHONPATH=DIR hypercorn --bind 127.0.0.1:PORT asgi:app
	hypercorn-brief   | hypercorn | python    | hypercorn                              | HTTP       | cut         | quiet   |         |      |         | env PYTHONPATH=DIR hypercorn --graceful-timeout 1 --bind 127.0.0.1:PORT asgi:app
	unicorn           | unicorn   | ruby      | unicorn                                | HTTP       |             |         | TERM    |      |         | unicorn -l 127.0.0.1:PORT DIR/config.ru
	puma              | puma      | ruby      | puma                                   | HTTP       |             |         |         |      |         | puma -b tcp://127.0.0.1:PORT DIR/config.ru
	caddy             | caddy     | caddy     | caddy                                  | HTTP       |             |         |         |      |         | caddy run --config DIR/Caddyfile
	go                | go        |           |                                        | HTTP       |             |         |         |      |         | SELF helper serve PORT backend BACKEND graceful
	go-bare           | go        |           |                                        | HTTP       | cut         |         |         | 143  |         | SELF helper serve PORT backend BACKEND
	varnish           | varnish   |           | varnishd gcc                           | HTTP       | cut         | quiet   |         |      | mkdir DIR/cwd | varnishd -F -j none -a 127.0.0.1:PORT -b 127.0.0.1:BACKEND -n DIR/cwd
	node              | node      | node      | node                                   | HTTP       |             |         |         |      |         | node DIR/server.js graceful
	node-bare         | node      | node      | node                                   | HTTP       | cut         | quiet   |         | 143  |         | node DIR/server.js
	java              | java      | java      | java /usr/share/java/eclipse-jdt-core.jar | HTTP       |             |         |         |      | COMPILE | JVM hook
	java-bare         | java      | java      | java /usr/share/java/eclipse-jdt-core.jar | HTTP       | cut         |         |         |      | COMPILE | JVM
	tomcat            | tomcat    | tomcat    | /usr/share/tomcat10/bin/catalina.sh    | HTTP       |             |         |         |      |         | env CATALINA_BASE=DIR JAVA_OPTS=-XX:TieredStopAtLevel=1 /usr/share/tomcat10/bin/catalina.sh run
	postgres          | postgres  |           | psql unshare /usr/lib/postgresql/*/bin | PostgreSQL |             |         | INT     |      | INITDB  | NOBODY sh -c 'exec POSTGRES -p PORT'
	pgbouncer         | pgbouncer | pgbouncer | psql unshare pgbouncer /usr/lib/postgresql/*/bin | PostgreSQL |             |         | TERM    |      | INITDB  | NOBODY sh -c 'POSTGRES -p OTHER & exec pgbouncer DIR/ini'
	mariadb           | mariadb   |           | mariadbd mariadb                       | MariaDB    | cut         | drained |         |      | sh -c 'mkdir -p DIR/data/x; touch DIR/data/x/db.opt' | MARIADB
	redis             | redis     |           | redis-server                           | Redis      | cut         | quiet   |         |      |         | redis-server --bind 127.0.0.1 --port PORT --dir DIR
	nats              | nats      |           | nats-server                            | NATS       |             |         | TERM    |      |         | nats-server -a 127.0.0.1 -p PORT
	sidekiq           | sidekiq   | sidekiq   | sidekiq redis-server redis-cli         | Sidekiq    |             |         |         |      |         | SIDEKIQ
	celery            | celery    | celery    | /usr/bin/celery                        | Celery     |             |         |         |      |         | env PYTHONPATH=DIR PATH=/usr/bin:/bin celery -A tasks worker --concurrency=1
`

// longer are the words that servers abbreviates. Debian keeps the programs of PostgreSQL out of PATH.
// PostgreSQL and PgBouncer refuse to run as root; in a new user namespace, root's files belong to
// the user nobody. Tomcat brings a compiler of Java along, so a runtime without the JDK is enough.
var longer = strings.NewReplacer(
	"PLUGIN", "/usr/lib/uwsgi/plugins/python3*_plugin.so",
	"UWSGI", "uwsgi --plugin=python3 --http-socket=127.0.0.1:PORT --master --processes=1 --chdir=DIR --wsgi=app",
	"COMPILE", "java -cp /usr/share/java/eclipse-jdt-core.jar org.eclipse.jdt.internal.compiler.batch.Main "+
		"-17 -proc:none -nowarn DIR/Slow.java",
	"JVM", "java -Xshare:auto -XX:TieredStopAtLevel=1 -cp DIR Slow",
	"NOBODY", nobody,
	"INITDB", nobody+" sh -c '"+bin+"/initdb -D DIR/data -U postgres -A trust -E UTF8 --no-locale --no-sync'",
	"POSTGRES", bin+`/postgres -D DIR/data -k "" -c fsync=off -c listen_addresses=127.0.0.1`,
	"MARIADB", "mariadbd --no-defaults --user=root --datadir=DIR/data --skip-grant-tables --bind-address=127.0.0.1 "+
		"--port=PORT --socket=DIR/socket --pid-file=DIR/pid --innodb-log-file-size=4M --innodb-buffer-pool-size=8M "+
		"--innodb-flush-log-at-trx-commit=0",
	"SIDEKIQ", "sh -c 'redis-server --bind 127.0.0.1 --port PORT --dir DIR & "+
		"until redis-cli -p PORT ping; do sleep 0.1; done; "+
		"REDIS_URL=redis://127.0.0.1:PORT exec sidekiq -t 20 -r DIR/job.rb'",
)

const (
	nobody = "unshare --user --map-user=65534 --map-group=65534 --"
	bin    = "$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)"
)

// start starts the server of a row with lameduck's flags, behind a wrapper. It skips a test where a program, or a
// file of a pattern, is not installed.
func start(t *testing.T, c box.Row, flags string, wrapper ...string) (*site, *box.Box) {
	t.Helper()
	for word := range strings.FieldsSeq(longer.Replace(c["needs"])) {
		if !strings.Contains(word, "/") {
			box.Needs(t, word)
		} else if found, _ := filepath.Glob(word); len(found) == 0 {
			t.Skipf("there is no %s", word)
		}
	}
	s := newSite(t, c["files"])
	if c["first"] != "" {
		if out, err := s.command(c["first"]).CombinedOutput(); strings.Contains(string(out), "unshare") {
			t.Skipf("no user namespace: %s", out)
		} else if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return s, s.boot(flags, append(slices.Clone(wrapper), s.command(c["command"]).Args...)...)
}

// TestPresets stops real servers with their presets, by TERM and by the stop signal of the server's
// image: the server is recognized, and the request in flight goes on to its end.
func TestPresets(t *testing.T) {
	box.Each(t, servers, func(t *testing.T, c box.Row) {
		is := func(word string) bool { return strings.Contains(c["is"], word) }
		begin := func(flags string) (b *box.Box, s *site, finish func() error) {
			t.Helper()
			s, b = start(t, c, flags)
			if c["case"] == "haproxy-master" {
				awaitMaster(b)
			}
			return b, s, clients[c["client"]](s)
		}
		p := preset.Named(c["preset"])
		first, _, _ := strings.Cut(p.Schedule.String(), "/")
		for _, trigger := range append(p.StopSignals, sig.TERM) {
			flag := "auto"
			if p.Name == "go" { // Go programs have no common sign
				flag = "go"
			}
			b, s, finish := begin("--delay=0.1 --log-level=debug --preset=" + flag)
			b.Signal(trigger)
			if flag == "auto" {
				b.Err.Wait("the command is recognized as " + p.Name)
			}
			b.Err.Wait("sending " + first + " to the command")
			if !is("cut") {
				wantServed(t, finish, true)
			}
			if is("running") {
				clients[c["client"]](s)
				b.Signal(sig.INT)
			}
			code, _ := strconv.Atoi(c["code"])
			b.WantExit(code)
			if is("cut") {
				wantServed(t, finish, false)
			}
		}
		if s, _ := sig.Parse(c["without"]); s != 0 {
			b, _, finish := begin("")
			b.Signal(s)
			b.WaitExit()
			wantServed(t, finish, false)
		}
		if c["hold"] != "" {
			b, _, finish := begin("--quiet-for=0.3 --grace-period=60 --preset=" + p.Name + " --until=" + c["hold"])
			b.Trigger()
			wantServed(t, finish, true)
			b.Signal(sig.INT) // the client may stay
			b.WaitExit()
		}
	})
}

// wrappers are what stands in front of a server, by name.
var wrappers = map[string][]string{
	"shell":        {"sh", "-c", `true; "$@"; true`, "sh"},
	"init":         {"tini", "--"},
	"another init": {"tini", "--", "sh", "-c", `true; "$@"; true`, "sh"},
}

// behind are the cases of TestBehind. uWSGI is none: its hook for TERM is set after its worker serves.
const behind = " haproxy nginx httpd php-fpm gunicorn uvicorn puma node tomcat postgres pgbouncer sidekiq celery "

// TestBehind stops servers behind a shell, and behind another init and a shell, with the preset that
// is found. Behind a shell, a server whose preset sends TERM is stopped without a preset, too.
func TestBehind(t *testing.T) {
	box.Needs(t, "tini")
	for _, c := range box.Table(servers) {
		p := preset.Named(c["preset"])
		if !strings.Contains(behind, " "+c["case"]+" ") {
			continue
		}
		for name, wrapper := range wrappers {
			t.Run(c["case"]+"/"+name, func(t *testing.T) {
				t.Parallel()
				for _, flags := range []string{"--grace-period=30 --preset=auto", "--grace-period=30"} {
					if flags == "--grace-period=30" && (p.Schedule.String() != "TERM" || name != "shell") {
						continue
					}
					s, b := start(t, c, flags, wrapper...)
					finish := clients[c["client"]](s)
					b.Stop()
					wantServed(t, finish, true)
					b.WaitExit()
				}
			})
		}
	}
}

// wantServed wants a request to end well, or to have been cut.
func wantServed(t *testing.T, finish func() error, well bool) {
	t.Helper()
	if err := finish(); (err == nil) != well {
		t.Errorf("the request ended with %v, want success: %v", err, well)
	}
}

// awaitMaster waits until HAProxy's master has executed itself again to wait for its worker.
// The worker serves before that, and the master loses signals that arrive in between. Since
// version 3.1 HAProxy does without the second execution, and awaitMaster gives up.
func awaitMaster(b *box.Box) {
	pid := b.Child()
	for end := time.Now().Add(testutil.Patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if strings.Contains(string(env), "HAPROXY_MWORKER_WAIT_ONLY=1") && box.Status(pid, "SigBlk") == "0000000000000000" {
			return
		}
	}
}

// TestPresetMemcached: with a memory file the cache survives a stop by the preset, and does
// not survive TERM.
func TestPresetMemcached(t *testing.T) {
	t.Parallel()
	box.Needs(t, "memcached")
	for flags, answer := range map[string]string{"--preset=auto --delay=0.1": "VALUE", "": "END"} {
		const server = "memcached -u root -l 127.0.0.1 -p PORT -m 64 -e DIR/memory"
		s := newSite(t, "")
		b := s.boot(flags, s.command(server).Args...)
		s.dial().mustAsk(s, "set a 0 0 1\r\nx", "STORED")
		b.Stop()
		b.WantExit(0)
		// memcached counts whole seconds, and takes a restart within the same second for a stopped clock
		time.Sleep(1100 * time.Millisecond)
		s.boot("", s.command(server).Args...)
		s.dial().mustAsk(s, "get a", answer)
	}
}

// TestAuto: a server is recognized although a script executes it as late as during the hold, under
// another init's name, and where /proc/PID/exe may not be read, by its command line. What wins over
// auto, the golden scripts show.
func TestAuto(t *testing.T) {
	box.Needs(t, "haproxy")
	dir := testutil.Must(os.MkdirTemp("", "auto"))
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	install := newSite(t, "haproxy").command("sh -c 'cd " + dir + "; install -m 711 $(command -v haproxy) haproxy; " + // executable, not readable
		"install -m 644 DIR/conf conf; install -m 755 " + box.Binary + " tini'")
	testutil.Must(0, install.Run())
	box.Row{
		"faults": "uid=65534", "env": "LAMEDUCK_PRESET=auto LAMEDUCK_DELAY=3 LAMEDUCK_GRACE_PERIOD=30",
		"line":    dir + "/tini sh -c 'echo ready; read go; cd " + dir + "; exec ./haproxy -db -f conf'",
		"session": "ready / TERM / err holding / > go / exits 0 / ended elapsed USR1",
	}.Play(t, nil)
}
