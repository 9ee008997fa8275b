package rollout

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// replica is a server under a contender: in a rollout PID 1 of namespaces of its own, and in
// the demo a process on the loopback interface.
type replica struct {
	*stage.Program
	host  string
	port  int     // its own, which tells watch the replicas of the demo apart
	slot  int     // in the balancer
	watch watcher // its Program is nil without one
}

func (r *replica) addr() string { return fmt.Sprintf("%s:%d", r.host, r.port) }

// patience is for a handshake.
const patience = 20 * time.Second

// start starts a replica and returns when the server accepts.
func (t *trial) start(ctx context.Context) *replica {
	number, dir := t.o.folder()
	network, command := fmt.Sprintf("10.%d.%d", 1+number/250, 1+number%250), stage.Linked
	if dir == "" {
		network, command = "127.0.0", stage.Command
	}
	r := &replica{host: network + ".2", port: 20000 + number, slot: len(t.replicas) + 1}
	words := t.contender.command(t.o, t.server, t.server.command(dir, r.addr()))
	r.Program = stage.Start(command(ctx, words...))
	t.replicas = append(t.replicas, r)
	if dir != "" {
		r.Link(fmt.Sprintf("r%d", number), network+".1", r.host, nil)
	}
	r.Await(ctx, r.host, r.port)
	return r
}

// close ends the replica in any state, and its network.
func (r *replica) close() {
	r.Close()
	r.watch.Close()
}

// Roles are the programs of the experiment, by the first argument.
var Roles = map[string]func(args []string) error{"serve": serve}

// serve is a load.Server at an address. Its kinds are
//
//	dies      TERM kills the server at once, with all requests in flight
//	graceful  on TERM, requests in flight are answered, and kept connections closed
//	calls     serves gRPC, and dies as well
//
// On the loopback interface the server ends with its standard input: no process outlives the demo.
func serve(args []string) error {
	kind, addr := args[0], args[1]
	if kind == "calls" {
		return serveCalls(addr)
	}
	s, err := load.Listen(addr)
	if err != nil {
		return err
	}
	if strings.HasPrefix(addr, "127.") {
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
	return nil
}
