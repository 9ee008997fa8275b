package rollout

// scene is a group of servers with a common table: failures mean the same in all of the
// group, and the same contenders play.
type scene string

const (
	steady scene = "steady" // dense traffic behind balancers that let go
	kept   scene = "kept"   // clients that never let go of connections
	sparse scene = "sparse" // thin or bursty traffic, or stragglers
)

var allScenes = []scene{steady, kept, sparse}

// jobs returns how many trials of a scene are played at a time, where the command line says
// how many of steady traffic. The losses of clients that never let go are a matter
// of milliseconds, and the processors shall be free then.
func (s scene) jobs(n int) int {
	if s == kept {
		return max(1, n/4)
	}
	return n
}

// title describes a scene's traffic.
func (s scene) title() string {
	switch s {
	case kept:
		return "clients that never let go: pools of connections through kube-proxy"
	case sparse:
		return "sparse traffic: thin, bursty, or with stragglers"
	}
	return "steady traffic, balancers that let go"
}
