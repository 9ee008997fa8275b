package rollout

import (
	"embed"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/internal/tables"
)

//go:embed rows texts
var files embed.FS

// rows reads an embedded table. A cell of words is a list, and one of a signal its name without SIG.
func rows[T any](name string) []*T {
	return tables.Read[T](string(must.Get(files.ReadFile("rows/"+name))), strings.Fields,
		func(name string) syscall.Signal { return unix.SignalNum("SIG" + name) })
}

// scene is a row of scenes.txt.
type scene struct {
	Name  string
	Jobs  int    // trials at a time
	Best  string // lameduck's contender in the chart
	Title string
}

// demo is the scene of lab demo. The others are those of lab rollout.
const demo = "demo"

// warm is the time of load before a stop: for pools to fill, and for the first sample.
const warm = 500 * time.Millisecond

// server is a kind of server, with a balancer and clients: a row of servers.txt.
type server struct {
	Name     string
	Scene    string
	Balancer string
	Runs     []string // a script of package peers, and its arguments
	Graceful syscall.Signal
	Min, Max time.Duration // how long a request takes
	Rate     float64       // requests a second
	Grace    time.Duration // the orchestrator's grace period
	Words    []string
}

var (
	scenes     = rows[scene]("scenes.txt")
	servers    = rows[server]("servers.txt")
	contenders = rows[contender]("contenders.txt")
	claims     = rows[claim]("claims.txt")
)

// has reports whether a word of the last column describes the server.
func (s *server) has(word string) bool { return slices.Contains(s.Words, word) }

// is reports whether a cell of claims.txt selects the server.
func (s *server) is(cell string) bool {
	if word, not := strings.CutPrefix(cell, "!"); not {
		return !s.has(word)
	}
	return cell == "" || cell == s.Name || cell == s.Balancer || s.has(cell)
}

// serverOf returns a server by name.
func serverOf(name string) *server {
	return servers[slices.IndexFunc(servers, func(s *server) bool { return s.Name == name })]
}
