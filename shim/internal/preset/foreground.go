package preset

// foreground has the settings with which servers stay in the foreground, by the names of the
// presets.
var foreground = map[string]string{
	"haproxy":   "with -db",
	"nginx":     "with -g 'daemon off;'",
	"httpd":     "with -DFOREGROUND",
	"php-fpm":   "with -F",
	"uwsgi":     "without --daemonize",
	"gunicorn":  "without --daemon",
	"unicorn":   "without -D",
	"varnish":   "with -F",
	"postgres":  "as postgres, not by pg_ctl",
	"pgbouncer": "without -d",
	"mariadb":   "as mariadbd, not as a service",
	"redis":     "with --daemonize no",
	"memcached": "without -d",
	"mongodb":   "without --fork",
	"rabbitmq":  "without -detached",
	"tomcat":    "by catalina.sh run",
}

// Foreground returns how the server stays in the foreground, in words for after the server's
// name ("with -F"), or "" for a server that never goes into the background.
func (p *Preset) Foreground() string { return foreground[p.Name] }
