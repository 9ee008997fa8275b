package rollout

// site is where a replica runs.
type site struct {
	exe    string // the laboratory
	dir    string // of the replica alone, for files
	listen string // HOST:PORT
}
