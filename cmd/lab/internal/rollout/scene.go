package rollout

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/internal/plays"
)

//go:embed rows pictures
var files embed.FS

// rows returns the cells of an embedded table.
func rows(name string) [][]string {
	return plays.Rows(string(must.Get(files.ReadFile("rows/" + name))))
}

func duration(text string) time.Duration { return must.Get(time.ParseDuration(text)) }

// scene is a group of servers with a common table: failures mean the same in all of the
// group, and the same contenders play.
type scene string

const (
	steady scene = "steady" // dense traffic behind balancers that let go
	kept   scene = "kept"   // clients that never let go of connections
	calls  scene = "calls"  // the same with gRPC
	closes scene = "closes" // the same, of a server that closes them at its end
	sparse scene = "sparse" // thin traffic

	demo scene = "demo" // one stop, without privileges and other programs
)

// rollouts are the scenes of lab rollout.
var rollouts = []scene{steady, kept, calls, closes, sparse}

var titles = map[scene]string{
	steady: "steady traffic, balancers that let go",
	kept:   "clients that never let go: pools of connections through kube-proxy",
	calls:  "the same with gRPC",
	closes: "pools, and the server closes the connections at its end",
	sparse: "sparse traffic: a request every four seconds at each replica",
}

// warm is the time of load before a stop: for pools to fill, and for the first sample.
const warm = 500 * time.Millisecond

// server is a kind of server, with a balancer and clients: a row of servers.txt.
type server struct {
	name     string
	scene    scene
	balancer string
	runs     []string // a script of package peers, and its arguments
	graceful syscall.Signal
	min, max time.Duration // how long a request takes
	rate     float64       // requests a second
	grace    time.Duration // the orchestrator's grace period
	words    []string
}

var servers = readServers()

func readServers() (all []*server) {
	for _, cells := range rows("servers.txt") {
		takes := strings.Fields(cells[5])
		s := &server{name: cells[0], scene: scene(cells[1]), balancer: cells[2], runs: strings.Fields(cells[3]),
			graceful: unix.SignalNum("SIG" + cells[4]), min: duration(takes[0]), max: duration(takes[1]),
			grace: duration(cells[7]), words: strings.Fields(cells[8])}
		fmt.Sscan(cells[6], &s.rate)
		all = append(all, s)
	}
	return all
}

// has reports whether a word of the last column describes the server.
func (s *server) has(word string) bool { return slices.Contains(s.words, word) }

// is reports whether a cell of claims.txt selects the server.
func (s *server) is(cell string) bool {
	if word, not := strings.CutPrefix(cell, "!"); not {
		return !s.has(word)
	}
	return cell == "" || cell == s.name || cell == s.balancer || s.has(cell)
}

// serverOf returns a server by name.
func serverOf(name string) *server {
	return servers[slices.IndexFunc(servers, func(s *server) bool { return s.name == name })]
}
