package rollout

import (
	"math/rand/v2"
	"sync"
)

// kubeProxy balances connections as kube-proxy does: each new connection goes to a replica
// chosen at random among those not yet removed, and stays there until one side closes.
// The client chooses at connect(2), with the same effect as the address translation at the
// first packet: the server sees the client's address, and removal leaves open connections
// alone.
//
// Nodes learn of a removal at different times. A share of the clients is on a node that
// learns late.
type kubeProxy struct {
	mu     sync.Mutex // requests run beside each other
	random *rand.Rand
	soon   []string // replicas known to the nodes of most clients
	late   []string // replicas known to the last node
	share  float64  // of the clients on the last node
}

// lateShare is the share of stragglers.
const lateShare = 0.03

func openKubeProxy(s *server, seed uint64) *kubeProxy {
	k := &kubeProxy{random: rand.New(rand.NewPCG(seed, 1))}
	if s.has("stragglers") {
		k.share = lateShare
	}
	return k
}

// pick returns the address for a new connection.
func (k *kubeProxy) pick() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.soon
	if k.random.Float64() < k.share {
		known = k.late
	}
	return known[k.random.IntN(len(known))]
}

func (k *kubeProxy) add(r *replica) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.soon, k.late = append(k.soon, r.addr), append(k.late, r.addr)
	return nil
}

// removeSoon removes a replica from all nodes but the last.
func (k *kubeProxy) removeSoon(r *replica) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.soon = without(k.soon, r)
}

func (k *kubeProxy) remove(r *replica) error {
	k.removeSoon(r)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.late = without(k.late, r)
	return nil
}

func (k *kubeProxy) addr() string { return "" }

func (k *kubeProxy) close() {}
