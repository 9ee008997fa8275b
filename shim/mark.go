//go:build linux

package shim

import (
	"bytes"
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
	family, err := proc.Below(proc.First())
	if err != nil {
		return 0
	}
	return holder(slices.DeleteFunc(family, procfs.Process.Dead), mayServe)
}

// holder returns the process with the mark in a family, a process and its descendants, by generations. It
// is 0 if something else may serve clients, too, beside that process or above it.
func holder(family []procfs.Process, mayServe func(pid int) bool) int {
	for i, p := range family {
		hasTwo := len(family) > i+2 && family[i+2].Parent == p.PID // children, of which the next is one
		switch {
		case p.Name == mark:
			return p.PID
		case hasTwo || mayServe(p.PID):
			return 0
		}
	}
	return 0
}

// mayServe reports whether a process has a socket, or may have one. Standard error may be one.
func mayServe(pid int) (may bool) {
	_, err := procfs.Root("").EachTarget(pid, func(fd int, target []byte) {
		may = may || fd > 2 && bytes.HasPrefix(target, []byte("socket:"))
	})
	return may || err != nil
}
