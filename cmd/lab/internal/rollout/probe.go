package rollout

import (
	"context"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// probePeriod is the default period of Kubernetes.
const probePeriod = 10 * time.Second

// probe makes the kubelet's readiness probes of a replica until the replica is gone: a
// connection each, from the clients' address.
func (a *arena) probe(ctx context.Context, p *replica) {
	c := &load.Client{Addr: p.addr}
	ticks := time.Tick(a.o.scale.of(probePeriod))
	for {
		select {
		case <-p.gone:
			return
		case <-ctx.Done():
			return
		case <-ticks:
			c.HTTP("/?think=0", "", time.Now().Add(time.Second))
		}
	}
}
