package rollout

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// port is where every replica serves, each at an address of its own.
const port = 8080

// server is a kind of server, with a balancer and a kind of clients.
type server struct {
	name      string
	balancer  string
	byConn    bool           // the balancer sees connections, not requests
	graceful  syscall.Signal // for a graceful stop
	keepAlive bool           // clients and balancer use connections again
	longLived bool           // a connection lasts: WebSockets
	min, max  time.Duration  // how long a request takes
	command   func(site) ([]string, error)
}

func allServers() []server {
	const ms = time.Millisecond
	return []server{
		{name: "go", balancer: "haproxy", graceful: syscall.SIGTERM, min: 5 * ms, max: 5 * ms, command: ours("http")},
		{name: "go behind nginx", balancer: "nginx", graceful: syscall.SIGTERM, min: 5 * ms, max: 5 * ms, command: ours("http")},
		{name: "go behind tcp", balancer: "haproxy", byConn: true, graceful: syscall.SIGTERM, min: 5 * ms, max: 5 * ms, command: ours("http")},
		{name: "slow", balancer: "haproxy", graceful: syscall.SIGTERM, min: 100 * ms, max: 3 * time.Second, command: ours("http")},
		{name: "pool", balancer: "haproxy", graceful: syscall.SIGTERM, keepAlive: true, max: 50 * ms, command: ours("http")},
		{name: "websocket", balancer: "haproxy", graceful: syscall.SIGTERM, keepAlive: true, longLived: true, command: ours("websocket")},
		{name: "haproxy", balancer: "haproxy", graceful: syscall.SIGUSR1, command: configured("haproxy.cfg", haproxyApp, "haproxy", "-W", "-db", "-f")},
		{name: "nginx", balancer: "haproxy", graceful: syscall.SIGQUIT, command: configured("nginx.conf", nginxApp, "nginx", "-c")},
	}
}

// think returns the thinking time of the next request.
func (s *server) think(r *rand.Rand, by scale) time.Duration {
	return by.of(s.min + time.Duration(r.Float64()*float64(s.max-s.min)))
}

// ours runs a server of this program.
func ours(kind string) func(site) ([]string, error) {
	return func(at site) ([]string, error) { return []string{at.exe, "rollout", "serve", kind, at.listen}, nil }
}

// configured runs a program with a configuration file as the last argument.
func configured(file, text string, words ...string) func(site) ([]string, error) {
	return func(at site) ([]string, error) {
		path := filepath.Join(at.dir, file)
		if err := os.WriteFile(path, fmt.Appendf(nil, text, port, at.dir), 0o644); err != nil {
			return nil, err
		}
		return append(words[:len(words):len(words)], path), nil
	}
}

const haproxyApp = `
defaults
    mode http
    timeout client 30s
    timeout connect 5s
    timeout server 30s
frontend web
    bind :%[1]d
    http-request return status 200 content-type text/plain string served
# %[2]s
`

const nginxApp = `
daemon off;
worker_processes 1;
pid %[2]s/pid;
error_log stderr emerg;
events {}
http {
    access_log off;
    client_body_temp_path %[2]s/body;
    proxy_temp_path %[2]s/proxy;
    fastcgi_temp_path %[2]s/fastcgi;
    uwsgi_temp_path %[2]s/uwsgi;
    scgi_temp_path %[2]s/scgi;
    server {
        listen %[1]d;
        location / { return 200 served; }
    }
}
`
