package rollout

import "testing"

// TestKubeProxy: new connections go to all replicas until a replica is removed, and until
// then stragglers go there from the last node.
func TestKubeProxy(t *testing.T) {
	const picks = 10_000
	for _, stragglers := range []bool{false, true} {
		k := openKubeProxy(&server{clients: clients{stragglers: stragglers}}, 1)
		old, other := &replica{addr: "old"}, &replica{addr: "other"}
		k.add(old)
		k.add(other)
		share := func() float64 {
			n := 0
			for range picks {
				if k.pick() == "old" {
					n++
				}
			}
			return float64(n) / picks
		}
		between := func(state string, low, high float64) {
			if got := share(); got < low || got > high {
				t.Errorf("stragglers %v: %s: a share of %v, want %v to %v", stragglers, state, got, low, high)
			}
		}
		between("before", 0.47, 0.53)
		k.removeSoon(old)
		if stragglers {
			between("removed from most nodes", 0.4*lateShare, 0.6*lateShare)
		} else {
			between("removed from all nodes", 0, 0)
		}
		k.remove(old)
		between("removed", 0, 0)
	}
}
