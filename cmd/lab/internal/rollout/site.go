package rollout

// site is where a replica runs.
type site struct {
	exe    string // this program
	dir    string // the replica's own, for its files
	listen string // HOST:PORT
}
