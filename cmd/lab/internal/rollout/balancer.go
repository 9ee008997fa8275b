package rollout

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// balancer balances over the replicas of one trial. No request is retried, so that no
// failure is hidden.
type balancer interface {
	// add and remove return when the change has taken effect.
	add(*replica)
	remove(*replica)
	// pick returns the address for a new connection.
	pick() string
	close()
}

// balance opens the balancer of a trial.
func (t *trial) balance(ctx context.Context) balancer {
	if t.server.balancer == "kube-proxy" {
		return newKubeProxy(t.server, t.load.seed)
	}
	n := 10000 + t.o.used.Add(1) // below the ports that the kernel chooses
	dir := filepath.Join(t.o.dir, fmt.Sprintf("balancer%d", n))
	must.Do(os.Mkdir(dir, 0o755))
	addr := fmt.Sprintf("127.0.0.1:%d", n)
	config := filepath.Join(dir, "config")
	if t.server.balancer == "nginx" {
		b := &nginx{process: newProcess(ctx, addr, "nginx", "-c", config), config: config, generation: 600}
		b.save()
		b.start()
		b.await(ctx)
		return b
	}
	b := &haproxy{newProcess(ctx, addr, "haproxy", "-db", "-f", config), filepath.Join(dir, "s")}
	text := fmt.Appendf(nil, haproxyConfig, b.socket, addr, haproxyModes[t.server.balancer])
	must.Do(os.WriteFile(config, text, 0o644))
	b.start()
	b.await(ctx)
	return b
}

func (p *process) pick() string { return p.addr }

// haproxyConfig has slots for the replicas of a rollout, which are eight at most.
const haproxyConfig = `
global
    stats socket unix@%[1]s mode 600 level admin
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

// haproxy learns of each change through the runtime API.
type haproxy struct {
	*process
	socket string
}

func (h *haproxy) add(r *replica) {
	host, port, _ := net.SplitHostPort(r.addr)
	h.say("changed", "set server pods/s%d addr %s port %s", r.slot, host, port)
	h.say("", "set server pods/s%d state ready", r.slot)
}

func (h *haproxy) remove(r *replica) { h.say("", "set server pods/s%d state maint", r.slot) }

// say sends one command. The answer must contain want, or be empty for an empty want.
func (h *haproxy) say(want, format string, args ...any) {
	conn := must.Get(net.Dial("unix", h.socket))
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, format+"\n", args...)
	answer := strings.TrimSpace(string(must.Get(io.ReadAll(conn))))
	must.Be(strings.Contains(answer, want) && (want != "" || answer == ""), "haproxy answers %q", answer)
}

// nginxConfig is for nginx as a balancer, and as a server.
const nginxConfig = `
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
        location = /generation { return %d; }
        location / {
            proxy_pass http://pods;
            proxy_next_upstream off;
            proxy_connect_timeout 2s;
        }
    }
`

// nginx learns of each change by a new file and HUP. A change has taken effect when the new
// workers answer, with a status of their generation.
type nginx struct {
	*process
	config     string
	pods       []*replica
	generation int
}

func (n *nginx) add(r *replica) {
	n.pods = append(n.pods, r)
	n.reload()
}

func (n *nginx) remove(r *replica) {
	n.pods = without(n.pods, r)
	n.reload()
}

// save has max_fails=0, or nginx would leave out a server for 10 s after a failure.
func (n *nginx) save() {
	servers := "server 127.0.0.1:1 down; " // or there might be none
	for _, r := range n.pods {
		servers += "server " + r.addr + " max_fails=0; "
	}
	text := fmt.Sprintf(nginxBalancer, servers, n.addr, n.generation)
	must.Do(os.WriteFile(n.config, fmt.Appendf(nil, nginxConfig, filepath.Dir(n.config), text), 0o644))
}

func (n *nginx) reload() {
	n.generation++
	n.save()
	must.Do(n.Process.Signal(syscall.SIGHUP))
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		conn, err := load.Dial(n.addr, end)
		if err != nil {
			continue
		}
		answer, err := conn.HTTP("/generation", "", false)
		conn.Close()
		if err == nil && answer.Status == n.generation {
			return
		}
	}
	must.Be(false, "nginx does not reload")
}

func without(all []*replica, r *replica) []*replica {
	return slices.DeleteFunc(all, func(other *replica) bool { return other == r })
}

// kubeProxy balances connections as kube-proxy does: each new connection goes to a replica
// chosen at random among those not yet removed, in the demo by turns, and stays there until one
// side closes.
// The client chooses at connect(2), with the same effect as the address translation at the
// first packet: the server sees the client's address, and removal leaves open connections
// alone.
//
// Nodes learn of a removal at different times. A share of the clients is on a node that
// learns late.
type kubeProxy struct {
	server *server

	mu       sync.Mutex // requests run beside each other
	random   *rand.Rand
	replicas []*replica // that the last node knows
	turn     int
	picked   map[*replica][]time.Time // when
}

// lateShare is the share of stragglers.
const lateShare = 0.03

func newKubeProxy(s *server, seed uint64) *kubeProxy {
	return &kubeProxy{server: s, random: rand.New(rand.NewPCG(seed, 1)), picked: map[*replica][]time.Time{}}
}

func (k *kubeProxy) pick() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.replicas
	if k.random.Float64() >= lateShare {
		known = slices.DeleteFunc(slices.Clone(known), func(r *replica) bool { return r.leaving })
	}
	k.turn++
	if !k.server.has("turns") {
		k.turn = k.random.IntN(len(known))
	}
	r := known[k.turn%len(known)]
	k.picked[r] = append(k.picked[r], time.Now())
	return r.addr
}

func (k *kubeProxy) add(r *replica) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.replicas = append(k.replicas, r)
}

// removeSoon removes a replica from all nodes but the last.
func (k *kubeProxy) removeSoon(r *replica) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r.leaving = true
}

func (k *kubeProxy) remove(r *replica) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.replicas = without(k.replicas, r)
}

// connections returns the new connections to a replica, with times from the stop on.
func (k *kubeProxy) connections(r *replica, stop time.Time) (ms []int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, at := range k.picked[r] {
		ms = append(ms, at.Sub(stop).Milliseconds())
	}
	return ms
}

func (k *kubeProxy) close() {}
