package rules

import (
	"math/rand/v2"
	"time"
)

// balancer is a way in which a balancer lets go of a server. The function draw takes the
// lag of the whole balancer and returns a function that draws the lag of one client: the
// time at which the client's requests begin to go to another server.
type balancer struct {
	name       string
	stragglers bool
	draw       func(r *rand.Rand, lag time.Duration) (lagOfClient func() time.Duration)
}

var allBalancers = []balancer{
	{"at once", false, atOnce},
	{"one by one", false, oneByOne},
	{"stragglers", true, stragglers},
}

// atOnce is a balancer with one node.
func atOnce(_ *rand.Rand, lag time.Duration) func() time.Duration {
	return func() time.Duration { return lag }
}

// oneByOne is a balancer with two to ten nodes. The last node has the whole lag, the
// others less. A client is on a node by chance.
func oneByOne(r *rand.Rand, lag time.Duration) func() time.Duration {
	nodes := make([]time.Duration, 2+r.IntN(9))
	for i := range nodes {
		nodes[i] = seconds(uniform(r, 0, lag.Seconds()))
	}
	nodes[0] = lag
	return func() time.Duration { return nodes[r.IntN(len(nodes))] }
}

// stragglers is a balancer that lets go of most clients after a tenth to half of the lag.
// Between 1 and 5 per cent of the clients stay to the end of the lag.
func stragglers(r *rand.Rand, lag time.Duration) func() time.Duration {
	early := seconds(lag.Seconds() * uniform(r, 0.1, 0.5))
	share := uniform(r, 0.01, 0.05)
	return func() time.Duration {
		if r.Float64() < share {
			return lag
		}
		return early
	}
}
