package rollout

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// balancer balances over the replicas of one trial. No request is retried, so that no
// failure is hidden.
type balancer interface {
	// set adds or removes a replica, and returns when the change has taken effect.
	set(r *replica, in bool)
	// pick returns the address for a new connection.
	pick() string
	Close()
}

// balance opens the balancer of a trial.
func (t *trial) balance(ctx context.Context) balancer {
	if t.server.Balancer == "kube-proxy" {
		return &kubeProxy{}
	}
	number, dir := t.o.folder()
	n := 10000 + number // below the ports that the kernel chooses
	p := &proxy{addr: fmt.Sprintf("127.0.0.1:%d", n), dir: dir}
	var b balancer = p
	words := []string{"haproxy", "-db", "-f"}
	if t.server.Balancer == "nginx" {
		known := &nginx{proxy: p}
		known.save()
		b, words = known, []string{"nginx", "-c"}
	} else {
		p.save(haproxyConfig, p.dir, p.addr, haproxyModes[t.server.Balancer])
	}
	p.Program = stage.Start(stage.Command(ctx, append(words, dir+"/config")...))
	p.Await(ctx, "127.0.0.1", n)
	return b
}

// proxy is a balancer that is a program: haproxy, or part of nginx.
type proxy struct {
	*stage.Program
	addr string
	dir  string
}

func (p *proxy) pick() string { return p.addr }

func (p *proxy) save(format string, args ...any) {
	must.Write(p.dir+"/config", fmt.Sprintf(format, args...))
}

// haproxyConfig has slots for the replicas of a rollout, which are eight at most.
const haproxyConfig = `
global
    stats socket unix@%[1]s/s mode 600 level admin
    stats timeout 1h
    nbthread 1
defaults
    %[3]s
    retries 0
    no option redispatch
    timeout client 1h
    timeout connect 2s
    timeout server 30s
    timeout tunnel 1h
frontend web
    bind %[2]s
    default_backend pods
backend pods
    balance roundrobin
    server-template s 1-9 127.0.0.1:1 disabled
`

// haproxyModes are the modes of balancing: requests, each with a connection of its own on
// both sides, or with kept connections; or connections, as kube-proxy does.
var haproxyModes = map[string]string{
	"haproxy":       "mode http\n    option httpclose\n    http-reuse never",
	"haproxy pools": "mode http\n    option http-keep-alive\n    http-reuse always",
	"haproxy tcp":   "mode tcp",
}

// set tells haproxy of a change through the runtime API, whose answer is empty, or says that an address
// changed.
func (p *proxy) set(r *replica, in bool) {
	change := "set server pods/s%[1]d state maint\n"
	if in {
		change = "set server pods/s%[1]d addr %[2]s port %[3]d; set server pods/s%[1]d state ready\n"
	}
	conn := must.Get(net.Dial("unix", p.dir+"/s"))
	defer conn.Close()
	fmt.Fprintf(conn, change, r.slot, r.host, r.port)
	answer := strings.TrimSpace(string(must.Get(io.ReadAll(conn))))
	must.Be(answer == "" || strings.Contains(answer, "changed"), "haproxy answers %q", answer)
}

// nginxConfig is for nginx as a balancer, and as a server.
const nginxConfig = `
user root;
daemon off;
worker_processes 1;
pid %[1]s/pid;
error_log stderr emerg;
events {}
http {
    access_log off;
    client_body_temp_path %[1]s/body;
    proxy_temp_path %[1]s/proxy;
    fastcgi_temp_path %[1]s/fastcgi;
    uwsgi_temp_path %[1]s/uwsgi;
    scgi_temp_path %[1]s/scgi;
    %[2]s
}
`

const nginxBalancer = `
    upstream pods { %s }
    server {
        listen %s;
        location /generation { return 404; }
        location = /generation/%d { return 200; }
        location / {
            proxy_pass http://pods;
            proxy_next_upstream off;
            proxy_connect_timeout 2s;
        }
    }
`

// nginx learns of each change by a new file and HUP. A change has taken effect when the new
// workers answer, which know their generation.
type nginx struct {
	*proxy
	pods       []*replica
	generation int
}

func (n *nginx) set(r *replica, in bool) {
	n.pods = changed(n.pods, r, in)
	n.generation++
	n.save()
	must.Do(n.Process.Signal(syscall.SIGHUP))
	must.Be(must.Soon(patience, func() bool {
		return load.Finish(http.Get(fmt.Sprintf("http://%s/generation/%d", n.addr, n.generation))) == nil
	}), "nginx does not reload")
}

// save has max_fails=0, or nginx would leave out a server for 10 s after a failure.
func (n *nginx) save() {
	servers := "server 127.0.0.1:1 down; " // or there might be none
	for _, r := range n.pods {
		servers += "server " + r.addr() + " max_fails=0; "
	}
	n.proxy.save(nginxConfig, n.dir, fmt.Sprintf(nginxBalancer, servers, n.addr, n.generation))
}

func changed(all []*replica, r *replica, in bool) []*replica {
	if in {
		return append(all, r)
	}
	return slices.DeleteFunc(all, func(other *replica) bool { return other == r })
}

// kubeProxy balances connections as kube-proxy does with IPVS: each new connection goes to the next
// replica of those not yet removed, and stays there until one side closes.
// The client chooses at connect(2), with the same effect as the address translation at the
// first packet: the server sees the client's address, and removal leaves open connections
// alone.
type kubeProxy struct {
	mu       sync.Mutex // requests run beside each other
	replicas []*replica
	turn     int
}

func (k *kubeProxy) pick() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.turn++
	return k.replicas[k.turn%len(k.replicas)].addr()
}

func (k *kubeProxy) set(r *replica, in bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.replicas = changed(k.replicas, r, in)
}

func (k *kubeProxy) Close() {}
