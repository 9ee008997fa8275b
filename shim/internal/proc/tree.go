package proc

import (
	"bytes"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// ownProc reports whether /proc is there and shows our own PID namespace: the
// numbers of another one would be other processes.
func ownProc() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
}

// Process is a process and its parent.
type Process struct{ PID, Parent int }

// Descendants lists our children and theirs, the living and the dead that
// nobody has reaped yet; ok is false where /proc cannot tell.
func Descendants() (family []Process, ok bool) {
	if !ownProc() {
		return nil, false
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, false
	}
	children := map[int][]Process{}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			p := Process{pid, parentOf(pid)}
			children[p.Parent] = append(children[p.Parent], p)
		}
	}
	family = slices.Clone(children[os.Getpid()])
	for i := 0; i < len(family); i++ {
		family = append(family, children[family[i].PID]...)
	}
	return family, true
}

// parentOf reads the fourth field of proc_pid_stat(5); the second one, the
// name, may hold anything but ends at the last parenthesis.
func parentOf(pid int) int {
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}

// Caught is the set of signals that the process pid catches (SigCgt of
// proc_pid_status(5)); ok is false where /proc cannot tell.
func Caught(pid int) (set sig.Set, ok bool) {
	if !ownProc() {
		return 0, false
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	_, rest, found := bytes.Cut(status, []byte("\nSigCgt:\t"))
	if err != nil || !found {
		return 0, false
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	bits, err := strconv.ParseUint(string(line), 16, 64)
	return sig.Set(bits), err == nil
}

// shells are the programs that run others and seldom pass on what they are sent.
var shells = []string{"sh", "ash", "bash", "dash", "ksh", "mksh", "zsh", "busybox"}

// IsShell reports whether the process pid is a shell with a child, as far as /proc
// can tell.
func IsShell(pid int) bool {
	exe, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	if !slices.Contains(shells, path.Base(exe)) {
		return false
	}
	family, _ := Descendants()
	return slices.ContainsFunc(family, func(p Process) bool { return p.Parent == pid })
}

// Program is the path of the program that the process pid runs, and its command
// line, as far as /proc can tell.
func Program(pid int) (exe string, argv []string) {
	if !ownProc() {
		return "", nil
	}
	dir := "/proc/" + strconv.Itoa(pid)
	exe, _ = os.Readlink(dir + "/exe")
	text, _ := os.ReadFile(dir + "/cmdline")
	if len(text) > 0 {
		argv = strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
	}
	return exe, argv
}
