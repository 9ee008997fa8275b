package procfs

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// PtraceScope returns kernel.yama.ptrace_scope, 0 without Yama; see ptrace(2).
func (r Root) PtraceScope() int {
	text, _ := os.ReadFile(r.String() + "/sys/kernel/yama/ptrace_scope")
	level, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return level
}

// AppArmor returns the AppArmor profile of our own process, "" if AppArmor does not confine it.
func (r Root) AppArmor() string {
	text, _ := os.ReadFile(r.path(Self, "attr/apparmor/current")) // Linux 5.8
	profile := strings.TrimSpace(string(text))
	if profile == "unconfined" {
		return ""
	}
	return profile
}

// IsOurs reports whether a process runs as our user and is dumpable. For root's user, the
// processes that are not dumpable are ours too; see "dumpable" in proc_pid(5).
func (r Root) IsOurs(pid int) bool {
	var s unix.Stat_t
	return unix.Stat(r.path(pid, "fd"), &s) == nil && int(s.Uid) == os.Geteuid()
}
