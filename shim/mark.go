//go:build linux

package shim

import (
	"bytes"
	"cmp"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
)

// mark is the name of a process that is a lameduck and will hold: preStop hooks look for it, and leave
// the hold to that process. /proc/PID/comm shows it to every user, whatever started the process.
const mark = "lameduck:holds"

// wearMark gives our process the mark. Without it the hold of a hook comes before our own. Package os
// would open descriptors of Go's runtime, which may fail.
func wearMark() {
	fd, err := unix.Open("/proc/self/comm", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, _ = unix.Write(fd, []byte(mark))
		unix.Close(fd)
	}
}

// HoldsItself returns the process id of the lameduck that runs this container's command and will hold,
// and 0 if there is none, or if that cannot be told: some processes may be hidden.
func HoldsItself() int {
	var proc procfs.Root
	all, err := proc.All()
	if err != nil {
		return 0
	}
	elsewhere := func(p procfs.Process) bool { return p.Dead() || !proc.SharesCgroups(p.PID) }
	return holder(slices.DeleteFunc(all, elsewhere), mayServe)
}

// holder returns the process with the mark among the processes of a container, and 0 if something else
// may serve clients, too, beside that process or above it. A container's first process is the oldest
// one, which is PID 1 unless the containers of a pod share their PID namespace.
func holder(family []procfs.Process, mayServe func(pid int) bool) int {
	if len(family) == 0 {
		return 0
	}
	older := func(a, b procfs.Process) int { return cmp.Compare(a.Start, b.Start) }
	p := slices.MinFunc(family, older)
	for p.Name != mark {
		parent := p.PID
		children := slices.DeleteFunc(slices.Clone(family), func(p procfs.Process) bool { return p.Parent != parent })
		if len(children) != 1 || mayServe(parent) {
			return 0
		}
		p = children[0]
	}
	return p.PID
}

// mayServe reports whether a process has a socket, or may have one. Standard error may be one.
func mayServe(pid int) (may bool) {
	_, err := procfs.Root("").EachTarget(pid, func(fd int, target []byte) {
		may = may || fd > 2 && bytes.HasPrefix(target, []byte("socket:"))
	})
	return may || err != nil
}
