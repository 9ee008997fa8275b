package rollout

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// scene is a group of servers with a common table: failures mean the same in all of the
// group, and the same contenders play.
type scene string

const (
	steady scene = "steady" // dense traffic behind balancers that let go
	kept   scene = "kept"   // clients that never let go of connections
	sparse scene = "sparse" // thin or bursty traffic, or stragglers

	demo    scene = "demo"    // one stop, without privileges and other programs
	anatomy scene = "anatomy" // one stop of lameduck, with slow requests, a floor and a graceful server
)

var allScenes = []scene{steady, kept, sparse, demo, anatomy}

var titles = map[scene]string{
	steady: "steady traffic, balancers that let go",
	kept:   "clients that never let go: pools of connections through kube-proxy",
	sparse: "sparse traffic: thin, bursty, or with stragglers",
}

// warm returns the time of load before a stop: for pools to fill, for the first sample, and
// in the anatomy for slow requests to be in flight.
func (s scene) warm() time.Duration {
	if s == anatomy {
		return 3 * time.Second
	}
	return 500 * time.Millisecond
}

// server is a kind of server, with a balancer and clients. The zero value of the clients is
// many of them at even gaps, with a GET and a new connection each.
type server struct {
	name       string
	scene      scene
	balancer   string         // haproxy, haproxy pools, haproxy tcp, nginx, kube-proxy, or built in
	runs       string         // a kind of our server, or a program
	graceful   syscall.Signal // for a graceful stop
	closesKept bool           // at that signal, answers requests in flight and closes kept connections
	grace      time.Duration  // the orchestrator's grace period; 0: that of Kubernetes, 30 s
	lags       []lag

	keepAlive  bool          // clients and balancer use connections again
	longLived  bool          // a connection lasts: WebSockets
	conns      int           // so many connections that are used in turn and never let go
	post       bool          // requests are POSTs, which no client repeats
	probed     bool          // a readiness probe comes as well
	stragglers bool          // a few clients are moved late
	min, max   time.Duration // how long a request takes
	rate       float64       // requests a second
	gap        func(r *rand.Rand, mean time.Duration) time.Duration
}

// usualRate is the rate of requests. Lower rates are compared with silences.
const usualRate = 40

// servers returns the servers of all scenes, scene by scene.
func servers() []server {
	const ms = time.Millisecond
	// At the first grace period a hold can end because only kept connections carry requests,
	// at the default one the ceiling comes first.
	never := server{scene: kept, balancer: "kube-proxy", runs: "dies", grace: time.Minute,
		keepAlive: true, conns: 24, post: true, probed: true, rate: 200, gap: exponential, min: 10 * ms, max: 30 * ms}
	never.name = "dies"
	soon, graceful := never, never
	soon.name, soon.grace = "dies, 30 s", 0
	graceful.name, graceful.runs, graceful.closesKept = "graceful", "graceful", true
	list := []server{
		{name: "go", balancer: "haproxy", runs: "dies", min: 5 * ms, max: 5 * ms},
		{name: "go behind nginx", balancer: "nginx", runs: "dies", min: 5 * ms, max: 5 * ms},
		{name: "go behind tcp", balancer: "haproxy tcp", runs: "dies", min: 5 * ms, max: 5 * ms},
		{name: "slow", balancer: "haproxy", runs: "dies", min: 100 * ms, max: 3 * time.Second},
		{name: "pool", balancer: "haproxy pools", runs: "dies", keepAlive: true, max: 50 * ms},
		{name: "websocket", balancer: "haproxy pools", runs: "dies", keepAlive: true, longLived: true},
		{name: "haproxy", balancer: "haproxy", runs: "haproxy", graceful: syscall.SIGUSR1},
		{name: "nginx", balancer: "haproxy", runs: "nginx", graceful: syscall.SIGQUIT},
		never, soon, graceful,
		{name: "thin", scene: sparse, balancer: "haproxy", runs: "dies", rate: 1.2, gap: exponential, min: 5 * ms, max: 5 * ms},
		{name: "bursty", scene: sparse, balancer: "haproxy", runs: "dies", rate: 2, gap: visits, min: 5 * ms, max: 5 * ms},
		{name: "stragglers", scene: sparse, balancer: "kube-proxy", runs: "dies", stragglers: true, min: 5 * ms, max: 5 * ms},
		{name: "demo", scene: demo, runs: "dies", rate: demoRate, post: true, min: 5 * ms, max: 5 * ms, lags: demoLags},
		{name: "anatomy", scene: anatomy, runs: "lingers", rate: 20, post: true, gap: exponential,
			min: 100 * ms, max: 1400 * ms, lags: anatomyLags},
	}
	for i := range list {
		s := &list[i]
		s.scene = cmp.Or(s.scene, steady)
		s.graceful = cmp.Or(s.graceful, syscall.SIGTERM)
		s.rate = cmp.Or(s.rate, usualRate)
		if s.lags == nil {
			s.lags = clusterLags
		}
	}
	return list
}

// serverOf returns a server by name.
func serverOf(name string) *server {
	list := servers()
	return &list[slices.IndexFunc(list, func(s server) bool { return s.name == name })]
}

// quick reports whether the server plays in a quick run.
func (s *server) quick() bool {
	return s.scene == steady || s.scene == kept && !s.closesKept && s.grace == 0
}

// gracePeriod returns the orchestrator's grace period.
func (s *server) gracePeriod() time.Duration { return cmp.Or(s.grace, 30*time.Second) }

// ceiling returns the longest hold that lameduck derives from the grace period: 10 s are
// for the server's own stop, and 1 s for the report.
func (s *server) ceiling() time.Duration { return s.gracePeriod() - 11*time.Second }

// think returns the thinking time of the next request.
func (s *server) think(r *rand.Rand, by scale) time.Duration {
	return by.of(s.min + time.Duration(r.Float64()*float64(s.max-s.min)))
}

// pause returns the time from one planned request to the next. Times of sparse traffic are
// compared with silences, and so compressed as these are.
func (s *server) pause(r *rand.Rand, by scale) time.Duration {
	mean := time.Duration(float64(time.Second) / s.rate)
	if s.rate < usualRate {
		mean = by.of(mean)
	}
	if s.gap == nil {
		return mean
	}
	return s.gap(r, mean)
}

// exponential draws the gaps of many independent clients, a Poisson process.
func exponential(r *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(r.ExpFloat64() * float64(mean))
}

// A visit is a burst of requests, like the page and the pictures of a web site.
const (
	visitSize  = 10  // mean number of requests
	visitShare = 0.2 // a gap within a visit, as a share of the mean gap
)

// visits draws the gaps of visits one after the other: short within a visit, and long
// between two visits.
func visits(r *rand.Rand, mean time.Duration) time.Duration {
	const between = visitSize - (visitSize-1)*visitShare
	if r.Float64() < 1.0/visitSize {
		return exponential(r, time.Duration(between*float64(mean)))
	}
	return exponential(r, time.Duration(visitShare*float64(mean)))
}

// port is where every replica in namespaces serves, each at an address of its own.
const port = 8080

// command returns the command line of a replica. dir is the replica's alone.
func (s *server) command(exe, dir, listen string) ([]string, error) {
	config, installed := map[string]string{"haproxy": haproxyApp, "nginx": nginxApp}[s.runs]
	if !installed {
		return []string{exe, "rollout", "serve", s.runs, listen}, nil
	}
	path := filepath.Join(dir, s.runs+".conf")
	if err := os.WriteFile(path, fmt.Appendf(nil, config, port, dir), 0o644); err != nil {
		return nil, err
	}
	if s.runs == "nginx" {
		return []string{"nginx", "-c", path}, nil
	}
	return []string{"haproxy", "-W", "-db", "-f", path}, nil
}

// programs returns the programs that have to be installed.
func (s *server) programs() []string {
	all := map[string][]string{"haproxy": {"haproxy"}, "nginx": {"nginx"}}
	balancer, _, _ := strings.Cut(s.balancer, " ")
	return slices.Concat(all[balancer], all[s.runs])
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
