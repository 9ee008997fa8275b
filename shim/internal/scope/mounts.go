package scope

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mount is a line of proc_pid_mountinfo(5).
type mount struct {
	root    string // what of the file system is mounted; outside our cgroup namespace it begins with /..
	point   string
	kind    string
	options string // the file system's own
}

func readMounts(proc string) ([]mount, error) {
	text, err := os.ReadFile(filepath.Join(proc, "self/mountinfo"))
	return parseMounts(string(text)), err
}

// parseMounts passes over lines that are none.
func parseMounts(text string) (mounts []mount) {
	for line := range strings.Lines(text) {
		before, after, _ := strings.Cut(line, " - ")
		where, what := strings.Fields(before), strings.Fields(after)
		if len(where) >= 6 && len(what) >= 3 {
			mounts = append(mounts, mount{unescape(where[3]), unescape(where[4]), what[0], what[2]})
		}
	}
	return mounts
}

// locate is where the mount shows the path of its file system; ok is false where
// it does not.
func (m mount) locate(path string) (dir string, ok bool) {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(m.root, "/"))
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return filepath.Join(m.point, rest), true
}

// hides reports whether the proc file system at point does not show all
// processes to everyone: its option hidepid, see proc(5).
func hides(mounts []mount, point string) bool {
	hidden := false
	for _, m := range mounts { // the last one is on top
		if m.kind == "proc" && m.point == point {
			hidden = false
			for option := range strings.SplitSeq(m.options, ",") {
				switch option {
				case "hidepid=2", "hidepid=invisible", "hidepid=4", "hidepid=ptraceable":
					hidden = true
				}
			}
		}
	}
	return hidden
}

// unescape undoes \040 and the like, which stand for blanks and backslashes.
func unescape(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if code, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}
