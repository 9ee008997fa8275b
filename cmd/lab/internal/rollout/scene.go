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

//go:embed rows texts
var files embed.FS

// rows returns the cells of an embedded table.
func rows(name string) [][]string {
	return plays.Rows(string(must.Get(files.ReadFile("rows/" + name))))
}

// scene is a row of scenes.txt.
type scene struct {
	name  string
	jobs  int    // trials at a time
	best  string // lameduck's contender in the chart
	Title string
}

// demo is the scene of lab demo. The others are those of lab rollout.
const demo = "demo"

var scenes = readScenes()

func readScenes() (all []scene) {
	for _, cells := range rows("scenes.txt") {
		all = append(all, scene{cells[0], plays.Number(cells[1]), cells[2], cells[3]})
	}
	return all
}

// warm is the time of load before a stop: for pools to fill, and for the first sample.
const warm = 500 * time.Millisecond

// server is a kind of server, with a balancer and clients: a row of servers.txt.
type server struct {
	name     string
	scene    string
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
		s := &server{name: cells[0], scene: cells[1], balancer: cells[2], runs: strings.Fields(cells[3]),
			graceful: unix.SignalNum("SIG" + cells[4]), min: plays.Duration(takes[0]), max: plays.Duration(takes[1]),
			grace: plays.Duration(cells[7]), words: strings.Fields(cells[8])}
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
