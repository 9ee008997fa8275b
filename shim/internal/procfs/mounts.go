package procfs

import (
	"os"
	"slices"
	"strings"
)

// Mount is a line of proc_pid_mountinfo(5).
type Mount struct {
	Point   string // in which blanks and the like are escaped
	Kind    string
	Options string // the file system's own
}

// Mounts lists the mounts of our mount namespace; later mounts hide earlier ones at the
// same point.
func (r Root) Mounts() ([]Mount, error) {
	text, err := os.ReadFile(r.path(Self, "mountinfo"))
	return parseMounts(string(text)), err
}

// parseMounts ignores lines of any other form.
func parseMounts(text string) (mounts []Mount) {
	for line := range strings.Lines(text) {
		before, after, _ := strings.Cut(line, " - ")
		where, what := strings.Fields(before), strings.Fields(after)
		if len(where) >= 6 && len(what) >= 3 {
			mounts = append(mounts, Mount{where[4], what[0], what[2]})
		}
	}
	return mounts
}

// hidesProcesses reports whether the proc file system at point shows each user their own
// processes alone: its option hidepid, see proc(5).
func hidesProcesses(mounts []Mount, point string) bool {
	for _, m := range slices.Backward(mounts) { // the last mount is on top
		if m.Kind == "proc" && m.Point == point {
			_, value, _ := strings.Cut(m.Options, "hidepid=")
			value, _, _ = strings.Cut(value, ",")
			return slices.Contains([]string{"2", "invisible", "4", "ptraceable"}, value)
		}
	}
	return false
}

// CgroupPath returns the path of our control group in the hierarchy of version 2, as our cgroup namespace
// shows it.
func (r Root) CgroupPath() string {
	text, _ := r.text(Self, "cgroup")
	return field("\n"+text, "0::")
}

// SharesCgroups reports whether a process is in our control groups, or in groups below, by
// proc_pid_cgroup(5).
func (r Root) SharesCgroups(pid int) bool {
	own, err := r.text(Self, "cgroup")
	theirs, failed := r.text(pid, "cgroup")
	return err == nil && failed == nil && contains(own, theirs)
}

// contains reports whether the groups in inner are those in outer, or below. Each line is a
// hierarchy. Groups outside of our cgroup namespace begin with /.. in it.
func contains(outer, inner string) bool {
	above := strings.Split(outer, "\n")
	below := strings.Split(inner, "\n")
	if len(above) != len(below) {
		return false
	}
	for i := range above {
		rest, ok := strings.CutPrefix(below[i], strings.TrimSuffix(above[i], "/"))
		if !ok || rest != "" && rest[0] != '/' || strings.HasPrefix(rest, "/..") {
			return false
		}
	}
	return true
}
