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

// Process is a process and its parent, and when the process was started, in clock ticks
// since the system was: proc_pid_stat(5).
type Process struct {
	PID, Parent int
	Start       string
}

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
			p := processOf(pid)
			children[p.Parent] = append(children[p.Parent], p)
		}
	}
	family = slices.Clone(children[os.Getpid()])
	for i := 0; i < len(family); i++ {
		family = append(family, children[family[i].PID]...)
	}
	return family, true
}

// processOf reads fields 4 and 22 of proc_pid_stat(5); field 2, the name, may hold
// anything but ends at the last parenthesis. Where the process is gone they are zero.
func processOf(pid int) Process {
	p := Process{PID: pid}
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // from field 3 on
	if len(fields) > 19 {
		p.Parent, _ = strconv.Atoi(string(fields[1]))
		p.Start = string(fields[19])
	}
	return p
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
