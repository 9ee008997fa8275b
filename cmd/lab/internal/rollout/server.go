package rollout

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// port is where every replica serves, each at an address of its own.
const port = 8080

// server is a kind of server, with a balancer and a kind of clients.
type server struct {
	name       string
	scene      scene
	balancer   string
	byConn     bool           // the balancer sees connections, not requests
	graceful   syscall.Signal // for a graceful stop
	closesKept bool           // at that signal, answers requests in flight and closes kept connections
	grace      time.Duration  // the orchestrator's grace period; 0: defaultGrace
	command    func(site) ([]string, error)
	clients
}

// defaultGrace is the grace period of Kubernetes.
const defaultGrace = 30 * time.Second

// gracePeriod returns the orchestrator's grace period.
func (s *server) gracePeriod() time.Duration { return cmp.Or(s.grace, defaultGrace) }

// ceiling returns the longest hold that lameduck derives from the grace period: 10 s are
// for the server's own stop, and 1 s for the report.
func (s *server) ceiling() time.Duration { return s.gracePeriod() - 11*time.Second }

// quick reports whether the server plays in a quick run.
func (s *server) quick() bool {
	return s.scene == steady || s.scene == kept && !s.closesKept && s.grace == 0
}

// allServers are the servers of all scenes, scene by scene.
func allServers() []server {
	return slices.Concat(steadyServers(), keptServers(), sparseServers())
}

func steadyServers() []server {
	const ms = time.Millisecond
	list := []server{
		{name: "go", balancer: "haproxy", graceful: syscall.SIGTERM, clients: clients{min: 5 * ms, max: 5 * ms}, command: ours("http")},
		{name: "go behind nginx", balancer: "nginx", graceful: syscall.SIGTERM, clients: clients{min: 5 * ms, max: 5 * ms}, command: ours("http")},
		{name: "go behind tcp", balancer: "haproxy", byConn: true, graceful: syscall.SIGTERM, clients: clients{min: 5 * ms, max: 5 * ms}, command: ours("http")},
		{name: "slow", balancer: "haproxy", graceful: syscall.SIGTERM, clients: clients{min: 100 * ms, max: 3 * time.Second}, command: ours("http")},
		{name: "pool", balancer: "haproxy", graceful: syscall.SIGTERM, clients: clients{keepAlive: true, max: 50 * ms}, command: ours("http")},
		{name: "websocket", balancer: "haproxy", graceful: syscall.SIGTERM, clients: clients{keepAlive: true, longLived: true}, command: ours("websocket")},
		{name: "haproxy", balancer: "haproxy", graceful: syscall.SIGUSR1, command: configured("haproxy.cfg", haproxyApp, "haproxy", "-W", "-db", "-f")},
		{name: "nginx", balancer: "haproxy", graceful: syscall.SIGQUIT, command: configured("nginx.conf", nginxApp, "nginx", "-c")},
	}
	for i := range list {
		list[i].scene = steady
	}
	return list
}

// keptServers are servers whose clients never let go. At the first grace period a hold can
// end because only kept connections carry requests, at the default one the ceiling comes
// first.
func keptServers() []server {
	const ms = time.Millisecond
	never := clients{keepAlive: true, conns: 24, post: true, probed: true, rate: 5, gap: exponential, min: 10 * ms, max: 30 * ms}
	return []server{
		{name: "dies", scene: kept, balancer: "kube-proxy", graceful: syscall.SIGTERM, grace: time.Minute, clients: never, command: ours("post")},
		{name: "dies, 30 s", scene: kept, balancer: "kube-proxy", graceful: syscall.SIGTERM, clients: never, command: ours("post")},
		{name: "graceful", scene: kept, balancer: "kube-proxy", graceful: syscall.SIGTERM, closesKept: true, grace: time.Minute, clients: never, command: ours("graceful")},
	}
}

// sparseServers are servers with traffic that proves little by a silence.
func sparseServers() []server {
	const ms = time.Millisecond
	return []server{
		{name: "thin", scene: sparse, balancer: "haproxy", graceful: syscall.SIGTERM, command: ours("http"),
			clients: clients{rate: 0.03, gap: exponential, min: 5 * ms, max: 5 * ms}},
		{name: "bursty", scene: sparse, balancer: "haproxy", graceful: syscall.SIGTERM, command: ours("http"),
			clients: clients{rate: 0.05, gap: visits, min: 5 * ms, max: 5 * ms}},
		{name: "stragglers", scene: sparse, balancer: "kube-proxy", graceful: syscall.SIGTERM, command: ours("http"),
			clients: clients{stragglers: true, min: 5 * ms, max: 5 * ms}},
	}
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
