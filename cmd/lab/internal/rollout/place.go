package rollout

import "context"

// place is where a trial's processes run. The laboratory's is a room; the smallest
// case makes do with the loopback interface.
type place interface {
	// start returns when the replica accepts. Its command is told where it runs.
	start(ctx context.Context, slot int, command func(site) ([]string, error)) (*replica, error)
	balance(ctx context.Context, s *server, slots int) (balancer, error)
}

// site is where a replica runs.
type site struct {
	exe    string // this program
	dir    string // the replica's own, for its files
	listen string // HOST:PORT
}
