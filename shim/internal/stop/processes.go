package stop

import "github.com/lameduck-init/lameduck/shim/internal/sig"

// Process is a process below lameduck: what the choice of the processes that a stop signals
// depends on.
type Process struct {
	PID, Parent int
	Start       uint64     // tells it from a later one with the same PID
	Stopped     bool       // by a signal, and handles no other until continued
	Server      string     // the known server that it is; "": none
	Signal      sig.Signal // asks it to end
	Handles     bool       // it has a handler for Signal
	Ignores     bool       // it ignores Signal
	Signaled    bool       // it has been sent a signal of this stop
}

// family is a list of processes by their parents. The key 0 stands for all parents that are not in
// the list: lameduck's own children are roots.
type family map[int][]Process

func newFamily(list []Process) family {
	listed := map[int]bool{}
	for _, p := range list {
		listed[p.PID] = true
	}
	f := family{}
	for _, p := range list {
		if !listed[p.Parent] {
			p.Parent = 0
		}
		f[p.Parent] = append(f[p.Parent], p)
	}
	return f
}

// handling returns the topmost processes among p and its descendants that handle their signal.
func (f family) handling(p Process) (topmost []Process) {
	if p.Handles {
		return []Process{p}
	}
	for _, child := range f[p.PID] {
		topmost = append(topmost, f.handling(child)...)
	}
	return topmost
}

// tops returns the processes for lameduck to signal: its own children, and the children of those
// that ignore their signal and would neither end nor pass it on.
func (f family) tops(parent int) (tops []Process) {
	for _, p := range f[parent] {
		if p.Ignores {
			tops = append(tops, f.tops(p.PID)...)
		} else {
			tops = append(tops, p)
		}
	}
	return tops
}

// Wave returns which of the processes that a command has left behind are sent their signal now,
// those at work, for whose end lameduck waits (the topmost that handle their signal), and those that
// are signaled when nobody is at work any more.
//
// Only roots are signaled. Their children are left to them, and become roots when they end. What
// has nobody at work below, such as tee, tail and sleep, comes last: others may write to it, and it
// has nothing to clean up.
func Wave(list []Process) (now, atWork, last []Process) {
	f := newFamily(list)
	for _, p := range f.tops(0) {
		working := f.handling(p)
		atWork = append(atWork, working...)
		switch {
		case p.Signaled:
		case len(working) > 0:
			now = append(now, p)
		default:
			last = append(last, p)
		}
	}
	return now, atWork, last
}

// ServerBelow returns the topmost descendant of the command that is a known server: the named one,
// or with an empty name the only one at its depth.
func ServerBelow(list []Process, command int, name string) (server Process, found bool) {
	f := newFamily(list)
	for generation := f[command]; len(generation) > 0; {
		var servers, next []Process
		for _, p := range generation {
			if p.Server != "" && (name == "" || p.Server == name) {
				servers = append(servers, p)
			}
			next = append(next, f[p.PID]...)
		}
		if len(servers) > 0 {
			return servers[0], len(servers) == 1 || name != ""
		}
		generation = next
	}
	return server, false
}
