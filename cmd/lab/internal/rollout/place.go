package rollout

import "context"

// place is where a trial's processes run: a room, or for the smallest case the loopback
// interface.
type place interface {
	// start returns when the replica accepts. command returns the words for a site.
	start(ctx context.Context, slot int, command func(site) ([]string, error)) (*replica, error)
	balance(ctx context.Context, s *server, slots int) (balancer, error)
}

// site is where a replica runs.
type site struct {
	exe    string // this program
	dir    string // the replica's own, for its files
	listen string // HOST:PORT
}
