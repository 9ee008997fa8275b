package rollout

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// replica is a server under a contender: in a rollout PID 1 of namespaces of its own, and in
// the demo a process on the loopback interface.
type replica struct {
	*stage.Program
	addr    string   // where it accepts
	slot    int      // in the balancer
	leaving bool     // removed from all nodes but the last
	watch   *watcher // nil: none
}

// port is where every replica in namespaces serves, each at an address of its own.
const port = 8080

// patience is for a handshake.
const patience = 20 * time.Second

// loopback is the line that a server on the loopback interface prints.
var loopback = regexp.MustCompile(`(?m)^127\.\S+$`)

// start starts a replica and returns when the server accepts.
func (t *trial) start(ctx context.Context) *replica {
	dir, listen, command := "", "127.0.0.1:0", stage.Command
	number := int(t.o.used.Add(1))
	if t.o.dir != "" {
		dir, listen, command = filepath.Join(t.o.dir, fmt.Sprintf("replica%d", number)), fmt.Sprintf(":%d", port), stage.Linked
		must.Do(os.Mkdir(dir, 0o755))
	}
	words := t.contender.command(t.o, t.server, t.server.command(dir, listen))
	r := &replica{Program: stage.Start(command(ctx, words...)), slot: len(t.replicas) + 1}
	t.replicas = append(t.replicas, r)
	if dir == "" {
		must.Be(must.Soon(patience, func() bool {
			r.MustRun()
			r.addr = loopback.FindString(r.Said())
			return r.addr != ""
		}), "no address:\n%s", r.Said())
		return r
	}
	network := fmt.Sprintf("10.%d.%d", 1+number/250, 1+number%250)
	r.Link(fmt.Sprintf("r%d", number), network+".1", network+".2", nil)
	r.addr = fmt.Sprintf("%s.2:%d", network, port)
	r.Await(ctx, network+".2", port)
	return r
}

// close ends the replica in any state, and its network.
func (r *replica) close() {
	r.Close()
	if r.watch != nil {
		r.watch.Close()
		r.watch.out.Close()
	}
}

// Roles are the programs of the experiment, by the first argument.
var Roles = map[string]func(args []string) error{"serve": serve}

// serve is a load.Server at an address. Its kinds are
//
//	dies      TERM kills the server at once, with all requests in flight
//	graceful  on TERM, requests in flight are answered, and kept connections closed
//	lingers   likewise, and the exit takes a second more
//
// On the loopback interface the server prints its address, and ends with its standard input:
// no process outlives the demo.
func serve(args []string) error {
	kind := args[0]
	s, err := load.Listen(args[1])
	if err != nil {
		return err
	}
	if strings.HasPrefix(args[1], "127.") {
		fmt.Println(s.Addr())
		go func() {
			io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
	}
	term := make(chan os.Signal, 1)
	if kind != "dies" {
		signal.Notify(term, syscall.SIGTERM)
	}
	go func() {
		<-term
		s.Stop(0)
	}()
	s.Serve()
	if kind == "lingers" {
		time.Sleep(time.Second)
	}
	return nil
}

// probePeriod is the default period of Kubernetes.
const probePeriod = 10 * time.Second

// probe makes the kubelet's readiness probes until the replica is gone: a connection each, from
// the clients' address.
func (r *replica) probe(ctx context.Context, period time.Duration) {
	c := &load.Client{Addr: r.addr}
	for load.Sleep(ctx, period) == nil && !r.HasGone() {
		c.HTTP("/0s", "", time.Now().Add(time.Second))
	}
}

// report returns the report of the end of the hold.
func (s *stop) report() stage.Report {
	return *cmp.Or(stage.LastReport(s.Reports), &stage.Report{})
}
