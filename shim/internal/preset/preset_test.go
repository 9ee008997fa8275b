package preset

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// TestPresetTable: names and programs are unique, and every preset has texts that fit into
// a table.
func TestPresetTable(t *testing.T) {
	owners := map[string]string{}
	own := func(p Preset, what string) {
		if other, twice := owners[what]; twice {
			t.Errorf("%s is of %s and of %s", what, other, p.Name)
		}
		owners[what] = p.Name
	}
	for _, p := range All() {
		for _, name := range append(p.Aliases, p.Name) {
			own(p, "name "+name)
			if got := Named(strings.ToUpper(name)); got == nil || got.Name != p.Name {
				t.Errorf("%q finds %v", name, got)
			}
		}
		for _, program := range p.Programs {
			own(p, "program "+program)
		}
		if p.Says == "" || p.Source == "" || p.ClosesKept && p.Kept == "" {
			t.Errorf("%s does not say what it does, how, or who says so", p.Name)
		}
		if strings.ContainsAny(p.Says+p.Caveat+p.Kept, "|\n") {
			t.Errorf("%s: no line of a table", p.Name)
		}
	}
	if p := Named("nginy"); p != nil {
		t.Errorf("nginy finds %v", p)
	}
}

// filled returns a template filled in from each preset.
func filled(t *testing.T, text string) string {
	t.Helper()
	funcs := template.FuncMap{"join": strings.Join}
	each := template.Must(template.New("").Funcs(funcs).Parse("{{range .}}" + text + "{{end}}"))
	var out strings.Builder
	if err := each.Execute(&out, All()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// block is a block of presets.txt.
const block = `
name: {{.Name}}
{{with .Aliases}}aliases: {{join . " "}}
{{end}}{{with .Programs}}programs: {{join . " "}}
{{end}}{{range .StopSignals}}stopsignal: {{.}}
{{end}}{{with .Schedule}}schedule: {{.}}
{{end}}{{range .Exit}}exit: {{.From}}
{{end}}says: {{.Says}}
{{with .Caveat}}caveat: {{.}}
{{end}}source: {{.Source}}
{{with .Kept}}kept: {{.}}
{{end}}{{if or .Proven .GroupCuts .ClosesKept}}marks:
{{- if .Proven}} proven{{end}}{{if .GroupCuts}} group-cuts{{end}}{{if .ClosesKept}} closes-kept{{end}}
{{end}}`

// TestPresetText: no line of presets.txt is lost.
func TestPresetText(t *testing.T) {
	if got := filled(t, block); got != "\n"+text {
		t.Errorf("it is read as\n%s", got)
	}
	for _, p := range All() {
		for _, code := range p.Exit {
			if code.To != 0 || !code.Stopped {
				t.Errorf("%s: exit code %v", p.Name, code)
			}
		}
	}
}

// TestPresetSchedules: presets send signals, never KILL, and fit into the shortest reserve:
// some 2.6 s of Nomad's 5 s.
func TestPresetSchedules(t *testing.T) {
	for _, p := range All() {
		var sum time.Duration
		for _, step := range p.Schedule {
			sum += step.Wait
			if step.Signal == sig.KILL {
				t.Errorf("%s sends KILL", p.Name)
			}
		}
		if sum > 2*time.Second {
			t.Errorf("%s takes %v", p.Name, sum)
		}
		if slices.Contains(p.StopSignals, sig.TERM) {
			t.Errorf("%s: TERM always starts a stop", p.Name)
		}
	}
}

// processes are the contents of /proc for processes: the preset that matches, the executable, and
// the arguments.
const processes = `
haproxy   | /usr/sbin/haproxy | haproxy | -W | -db | -f | /usr/local/etc/haproxy/haproxy.cfg
nginx     | /usr/sbin/nginx | nginx: master process nginx -c /etc/nginx/nginx.conf -g daemon off;
nginx     |  | nginx: master process nginx -g daemon off;
nginx     | /usr/sbin/nginx (deleted) | nginx | -g | daemon off;
nginx     | /usr/local/openresty/nginx/sbin/nginx
    | nginx: master process /usr/local/openresty/bin/openresty -g daemon off;
nginx     |  | /usr/local/openresty/bin/openresty | -g | daemon off;
httpd     | /usr/sbin/apache2 | apache2 | -DFOREGROUND | -f | /etc/apache2/apache2.conf
httpd     | /usr/local/apache2/bin/httpd | httpd | -DFOREGROUND
php-fpm   | /usr/sbin/php-fpm8.2 | php-fpm: master process (/etc/php/8.2/fpm/php-fpm.conf)
php-fpm   | /usr/local/sbin/php-fpm | php-fpm
php-fpm   |  | /usr/sbin/php-fpm8.4 | -F
php-fpm   |  | php-fpm83 | -F
uwsgi     | /usr/bin/uwsgi-core | uwsgi | --plugin=python3 | --http-socket=:8000 | --master | --wsgi=app
uwsgi     | /usr/bin/uwsgi-core | /usr/bin/uwsgi_python311 | app.ini
gunicorn  | /usr/bin/python3.11 | /usr/bin/python3 | /usr/bin/gunicorn | --chdir | /app | -b
    | 127.0.0.1:18060 | app
gunicorn  |  | /usr/bin/python3 | /usr/bin/gunicorn | app
gunicorn  | /usr/bin/python3.11 | python3 | -u | -W | ignore | -X | dev | /usr/local/bin/gunicorn | app
gunicorn  | /usr/bin/python3.11 | python | -m | gunicorn | app
gunicorn  | /usr/bin/python3.11 | python | -Wignore | -m | gunicorn.app.wsgiapp | app
gunicorn  | /usr/bin/python3.11 | gunicorn: master [app]
gunicorn  |  | gunicorn: master [app]
          | /usr/bin/python3.11 | python | -m | http.server
          | /usr/bin/python3.11 | python | manage.py | runserver
          | /usr/bin/python3.11 | python | -c | import gunicorn
          | /usr/bin/python3.11 | python | train.py | gunicorn
uvicorn   | /usr/bin/python3.11 | /usr/bin/python3 | /usr/local/bin/uvicorn | app:app | --workers | 2
uvicorn   | /usr/bin/python3.11 | python | -m | uvicorn | app:app
hypercorn | /usr/bin/python3.11 | /usr/bin/python3 | /usr/bin/hypercorn | app:app
celery    | /usr/bin/python3.11 | python3 | /usr/bin/celery | -A | app | worker
huey      | /usr/bin/python3.11 | /usr/local/bin/python | /usr/local/bin/huey_consumer.py | app.huey
huey      | /usr/bin/python3.11 | python3 | /app/bin/huey_consumer | app.huey | -w | 4
resque    | /usr/local/bin/ruby | resque-2.6.0: Waiting for *
resque    | /usr/local/bin/ruby | resque: Starting
gitlab-runner | /usr/bin/gitlab-runner | gitlab-runner | run | --user=gitlab-runner
pgdog     | /usr/local/bin/pgdog | /usr/local/bin/pgdog
celery    | /usr/bin/python3.11 | python | -m | celery | -A | app | worker
unicorn   | /usr/bin/ruby3.1 | unicorn master -l 127.0.0.1:18070 config.ru
unicorn   | /usr/bin/ruby3.1 | ruby | /usr/bin/unicorn_rails | -c | config/unicorn.rb
puma      | /usr/bin/ruby3.1 | puma 5.6.5 (tcp://127.0.0.1:18080) [app]
puma      |  | puma 6.0 (tcp://0.0.0.0:3000)
puma      | /usr/bin/ruby3.1 | ruby | /usr/local/bundle/bin/puma | -C | config/puma.rb
puma      | /usr/bin/ruby3.1 | ruby | -I | lib | -W0 | /usr/local/bin/bundle | exec | puma | -C
    | config/puma.rb
sidekiq   | /usr/bin/ruby3.1 | sidekiq 6.4.1  [1 of 10 busy]
sidekiq   | /usr/bin/ruby3.1 | ruby | /usr/local/bin/bundle | exec | sidekiq | -C | config/sidekiq.yml
# until Puma sets its title
          | /usr/bin/ruby3.1 | ruby | bin/rails | server
          | /usr/bin/ruby3.1 | ruby | -e | puts 1
caddy     | /usr/bin/caddy | caddy | run | --config | /etc/caddy/Caddyfile
traefik   | /usr/local/bin/traefik | traefik | traefik | --providers.docker
envoy     | /usr/local/bin/envoy | envoy | -c | /etc/envoy/envoy.yaml
varnish   | /usr/sbin/varnishd | varnishd | -F | -j | none | -a | :80 | -b | app:8080
postgres  | /usr/lib/postgresql/15/bin/postgres | /usr/lib/postgresql/15/bin/postgres | -D | /data | -k |
postgres  |  | postgres
pgbouncer | /usr/sbin/pgbouncer | pgbouncer | /etc/pgbouncer/pgbouncer.ini
mariadb   | /usr/sbin/mariadbd | mariadbd | --user=mysql
mariadb   | /usr/sbin/mysqld | mysqld
redis     | /usr/bin/redis-check-rdb | redis-server 127.0.0.1:18530
redis     | /usr/local/bin/redis-server | redis-server *:6379
redis     |  | /usr/bin/redis-server *:6379 |  |  |
redis     | /usr/local/bin/valkey-server | valkey-server *:6379
memcached | /usr/bin/memcached | memcached | -u | nobody
mongodb   | /usr/bin/mongod | mongod | --bind_ip_all
rabbitmq  | /usr/lib/erlang/erts-13.1.5/bin/beam.smp | /usr/lib/erlang/erts-13.1.5/bin/beam.smp | -W | w
    | -MBas | ageffcbf | -- | -root | /usr/lib/erlang | -noinput | -s | rabbit | boot | -boot | start_sasl
          | /usr/lib/erlang/erts-13.1.5/bin/beam.smp | beam.smp | -- | -s | ejabberd
# gets TERM in any case
          | /usr/bin/dash | /bin/sh | /usr/lib/rabbitmq/bin/rabbitmq-server
nats      | /usr/sbin/nats-server | nats-server | -c | /etc/nats.conf
tomcat    | /usr/lib/jvm/java-17-openjdk-amd64/bin/java | /usr/bin/java | -Dcatalina.base=/srv | -classpath
    | /usr/share/tomcat10/bin/bootstrap.jar | org.apache.catalina.startup.Bootstrap | start
java      | /usr/lib/jvm/java-17-openjdk-amd64/bin/java | java | -jar | app.jar
java      |  | /opt/java/openjdk/bin/java | -jar | app.jar
node      | /usr/bin/node | node | /app/server.js
node      | /usr/local/bin/node | npm start
node      |  | /usr/bin/nodejs | server.js
systemd   | /usr/lib/systemd/systemd | /sbin/init
          | /usr/bin/dash | sh | -c | sleep 1; exec nginx
          | /usr/bin/bash | /bin/bash | /docker-entrypoint.sh | nginx | -g | daemon off;
          | /usr/bin/bash | bash | nginx
          | /bin/busybox | /bin/sh | /docker-entrypoint.sh | php-fpm
          | /app/server | /app/server
          |  |
`

// TestMatch matches the contents of /proc for real processes and for the usual ways to
// start servers. An empty exe stands for a link that may not be read.
func TestMatch(t *testing.T) {
	for _, cells := range tables.Rows(processes) {
		got := ""
		if p := Match(cells[1], cells[2:]); p != nil {
			got = p.Name
		}
		if got != cells[0] {
			t.Errorf("%q is %q", cells, got)
		}
	}
	if p := Match("/usr/sbin/nginx", nil); p != nil {
		t.Errorf("without a command line it is %v", p) // the kernel's threads, and zombies
	}
}

// The rows of docs/presets.md.
const (
	documented = "| {{.Name}}{{with .Aliases}} ({{join . `, `}}){{end}}{{if not .Proven}}\\*{{end}} " +
		"| `{{.Schedule}}` | {{.Says}}{{with .Caveat}}. **Caveat:** {{.}}{{end}} |\n"
	documentedKept = "{{if .Kept}}| {{.Name}} | {{if .ClosesKept}}yes{{else}}no{{end}} | {{.Kept}} |\n{{end}}"
)

var update = flag.Bool("update", false, "write docs/presets.md")

// TestPresetDocs: docs/presets.md has the tables of presets.txt.
func TestPresetDocs(t *testing.T) {
	const path = "../../../docs/presets.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := withRows(t, string(page), "server | sent", filled(t, documented))
	want = withRows(t, want, "server | closes kept connections", filled(t, documentedKept))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(page) {
		t.Error("the tables of docs/presets.md are not those of presets.txt; see them with -update")
	}
}

// withRows returns a page with other rows in the table with these titles.
func withRows(t *testing.T, page, titles, rows string) string {
	t.Helper()
	table := regexp.MustCompile(`(?s)(\n\| ` + regexp.QuoteMeta(titles) + `.*?\n.*?\n).*?\n\n`)
	if !table.MatchString(page) {
		t.Fatalf("no table %q", titles)
	}
	return table.ReplaceAllString(page, "${1}"+rows+"\n")
}
