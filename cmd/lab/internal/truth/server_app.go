package truth

import (
	"os/exec"
	"path/filepath"
)

// Application servers with an application like the function answer in server_http.go.
var (
	gunicornSync    = gunicorn("--workers=2")
	gunicornOne     = gunicorn("--workers=1")
	gunicornThreads = gunicorn("--worker-class=gthread", "--workers=1", "--threads=16", "--keep-alive=300")
	gunicornTLS     = overTLS(gunicorn("--worker-class=gthread", "--workers=1", "--threads=16", "--keep-alive=300", "--certfile=DIR/cert.pem", "--keyfile=DIR/cert.pem"))
	uwsgiHTTP       = uwsgi("--http-socket=:PORT")
	uwsgiKept       = uwsgi("--http11-socket=:PORT", "--add-header=Connection: keep-alive", "--so-keepalive")
	fpm             = &server{needs: []string{phpFPM}, command: configured(phpFiles("0.0.0.0:PORT"), phpFPM, "--allow-to-run-as-root", "--fpm-config", "DIR/fpm.conf")}
	// fpmBehindNginx has both servers in one container, connected by a Unix socket.
	fpmBehindNginx = &server{needs: []string{phpFPM, "nginx"}, command: configured(phpFiles("DIR/fpm.sock", "conf", nginxPHP),
		"sh", "-c", phpFPM+" --allow-to-run-as-root --fpm-config DIR/fpm.conf & until test -S DIR/fpm.sock; do sleep 0.1; done; exec nginx -c DIR/conf")}
)

func gunicorn(words ...string) *server {
	command := append([]string{"gunicorn", "--chdir=DIR", "--bind=0.0.0.0:PORT", "--worker-tmp-dir=DIR", "--timeout=120"}, words...)
	return &server{needs: []string{"gunicorn"}, command: configured(map[string]string{"app.py": pythonApp}, append(command, "app:application")...)}
}

// uwsgi finishes its requests at TERM.
func uwsgi(words ...string) *server {
	command := append([]string{"uwsgi", "--plugin=python3", "--master", "--processes=3", "--need-app", "--disable-logging",
		"--chdir=DIR", "--wsgi=app", "--hook-master-start=unix_signal:15 gracefully_kill_them_all"}, words...)
	return &server{needs: []string{"uwsgi"}, command: configured(map[string]string{"app.py": pythonApp}, command...)}
}

func overTLS(plain *server) *server {
	return &server{needs: plain.needs, tls: true, command: withCertificate(plain.command)}
}

const pythonApp = `
import time
from urllib.parse import parse_qs

def seconds(text):
    return float(text[:-2]) / 1000 if text.endswith("ms") else float(text[:-1])

def application(environ, start_response):
    query = {k: v[0] for k, v in parse_qs(environ.get("QUERY_STRING", "")).items()}
    time.sleep(seconds(query.get("late", "0s")))
    left = int(environ.get("CONTENT_LENGTH") or 0)
    while left > 0:
        left -= len(environ["wsgi.input"].read(min(left, 1000)))
    time.sleep(seconds(query.get("think", "0s")))
    size, count = max(int(query.get("size", 6)), 6), int(query.get("count", 1))
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(size * count))])
    return body(size, count, seconds(query.get("each", "0s")))

def body(size, count, each):
    for i in range(count):
        yield b"x" * size
        if i + 1 < count:
            time.sleep(each)
`

// phpFPM is the installed php-fpm: Debian's name includes the version.
var phpFPM = func() string {
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin"} {
		if found, _ := filepath.Glob(dir + "/php-fpm*"); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	path, err := exec.LookPath("php-fpm")
	if err != nil {
		return "php-fpm"
	}
	return path
}()

// phpFiles returns the files of php-fpm for a listening address, and another file.
func phpFiles(listen string, other ...string) map[string]string {
	files := map[string]string{"app.php": phpApp, "fpm.conf": `
[global]
error_log = /dev/stderr
daemonize = no
process_control_timeout = 40s
[www]
user = root
group = root
listen = ` + listen + `
pm = static
pm.max_children = 8
php_admin_value[output_buffering] = 0
`}
	if len(other) == 2 {
		files[other[0]] = other[1]
	}
	return files
}

const phpApp = `<?php
function seconds($text) {
    return str_ends_with($text, "ms") ? (float)$text / 1000 : (float)$text;
}

// pause sleeps on after a signal, which ends usleep.
function pause($text) {
    $end = microtime(true) + seconds($text);
    while (($left = $end - microtime(true)) > 0) {
        usleep((int)(1e6 * $left) + 1);
    }
}

pause($_GET["think"] ?? "0s");
$size = max((int)($_GET["size"] ?? 6), 6);
$count = (int)($_GET["count"] ?? 1);
for ($i = 0; $i < $count; $i++) {
    echo str_repeat("x", $size);
    flush();
    if ($i + 1 < $count) {
        pause($_GET["each"] ?? "0s");
    }
}
`

const nginxPHP = nginxHead + `
    server {
        listen PORT;
        location / {
            fastcgi_pass unix:DIR/fpm.sock;
            fastcgi_read_timeout 300s;
            fastcgi_buffering off;
            fastcgi_param SCRIPT_FILENAME DIR/app.php;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param REQUEST_METHOD $request_method;
        }
    }
}
`
