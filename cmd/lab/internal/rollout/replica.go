package rollout

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// replica is a server under a contender: in a rollout PID 1 of namespaces of its own, and in
// the demo a process on the loopback interface.
type replica struct {
	*stage.Program
	host  string
	port  int            // its own, which tells watch the replicas of the demo apart
	slot  int            // in the balancer
	watch *stage.Program // nil without one
}

func (r *replica) addr() string { return fmt.Sprintf("%s:%d", r.host, r.port) }

// patience is for a handshake.
const patience = 20 * time.Second

// start starts a replica and returns when the server accepts.
func (t *trial) start(ctx context.Context) *replica {
	number, dir := t.o.folder()
	network, port, command := fmt.Sprintf("10.%d.%d", 1+number/250, 1+number%250), plays.Port, stage.Linked
	if dir == "" {
		network, port, command = "127.0.0", 20000+number, stage.Command
	}
	r := &replica{host: network + ".2", port: port, slot: len(t.replicas) + 1}
	words := slices.Concat(t.before(), peers.Script(t.server.Runs))
	if t.contender.holds() {
		words[0] = t.o.lameduck
	}
	cmd := command(ctx, words...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "LAMEDUCK_LOG_FORMAT=json", "LAB="+must.Get(os.Executable()),
		"HOST="+r.host, fmt.Sprint("PORT=", port), "UPSTREAM=127.0.0.1:9") // nobody's
	r.Program = stage.Start(cmd)
	t.replicas = append(t.replicas, r)
	if dir != "" { // the server waits for its network
		peers.WriteCertificate(dir)
		r.Link(fmt.Sprintf("r%d", number), network+".1", r.host, nil)
	}
	r.Await(ctx, r.host, r.port)
	return r
}
