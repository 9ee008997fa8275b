package procfs

import (
	"bytes"
	"errors"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Executable returns the path of the program that a process runs; " (deleted)" follows a
// path that no longer leads to the program.
func (r Root) Executable(pid int) (string, error) { return os.Readlink(r.path(pid, "exe")) }

// maxArguments is how many bytes of a command line are read. An argument of execve(2) has at
// most half as many, but afterwards a process may declare any part of its memory its command
// line, without using the memory: see PR_SET_MM in prctl(2).
const maxArguments = 256 << 10

// Arguments returns the command line of a process: as passed to execve(2), or as the
// process has overwritten it since, and at most its first maxArguments bytes. It is empty for a
// process that has ended.
func (r Root) Arguments(pid int) ([]string, error) { return r.list(pid, "cmdline", maxArguments) }

// Environment returns the environment that was passed to execve(2).
func (r Root) Environment(pid int) ([]string, error) { return r.list(pid, "environ", math.MaxInt64) }

// Caught returns the mask of the signals that a process catches, SigCgt of
// proc_pid_status(5): bit 0 is signal 1.
func (r Root) Caught(pid int) (mask uint64, err error) {
	status, err := os.ReadFile(r.path(pid, "status"))
	if err != nil {
		return 0, err
	}
	_, rest, found := bytes.Cut(status, []byte("\nSigCgt:\t"))
	if !found {
		return 0, errors.New("its status lacks SigCgt")
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return strconv.ParseUint(string(line), 16, 64)
}

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
