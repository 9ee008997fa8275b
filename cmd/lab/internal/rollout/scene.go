package rollout

// scene is a group of servers that share a table: failures mean the same in all of the
// group, and the same contenders play.
type scene string

const (
	steady scene = "steady" // dense traffic behind a balancer that lets go
	kept   scene = "kept"   // clients that keep their connections and never let go
	sparse scene = "sparse" // traffic that is thin, bursty, or has stragglers
)

var allScenes = []scene{steady, kept, sparse}

// jobs returns how many trials of a scene are played at a time, where the command line says
// how many of steady traffic. What clients lose that never let go is a matter of
// milliseconds, in which the processors shall not be needed elsewhere.
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
