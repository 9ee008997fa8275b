package scope

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// processes lists our descendants, or everyone in our PID namespace, without
// ourselves. What it lists is good where it is not all, and so an error.
func processes(proc string, everyone bool) ([]int, error) {
	pids, err := visible(proc)
	if !everyone {
		var unknown error
		pids, unknown = descendants(proc, pids)
		if err == nil {
			err = unknown
		}
	}
	pids = slices.DeleteFunc(pids, func(pid int) bool { return pid == os.Getpid() })
	return pids, err
}

// visible lists the processes that proc shows us.
func visible(proc string) (pids []int, err error) {
	// the numbers of another PID namespace would be other processes
	if self, err := os.Readlink(filepath.Join(proc, "self")); err != nil || self != strconv.Itoa(os.Getpid()) {
		return nil, fmt.Errorf("%q does not show our PID namespace", proc)
	}
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	mounts, err := readMounts(proc)
	if err == nil && hides(mounts, filepath.Clean(proc)) {
		err = fmt.Errorf("%q hides processes: it is mounted with hidepid", proc)
	}
	return pids, err
}

// descendants are our children and theirs, the dead too.
func descendants(proc string, pids []int) (family []int, err error) {
	parents := map[int]int{}
	for _, pid := range pids {
		s, failed := readStat(filepath.Join(proc, strconv.Itoa(pid)))
		switch {
		case failed == nil:
			parents[pid] = s.parent
		case !gone(failed):
			err = fmt.Errorf("cannot tell the parent of process %d: %w", pid, failed)
		}
	}
	children := map[int][]int{}
	for pid, parent := range parents {
		if _, known := parents[parent]; !known && parent != 0 { // orphaned meanwhile?
			if s, failed := readStat(filepath.Join(proc, strconv.Itoa(pid))); failed == nil {
				parent = s.parent
			}
		}
		children[parent] = append(children[parent], pid)
	}
	family = slices.Clone(children[os.Getpid()])
	for i := 0; i < len(family); i++ {
		family = append(family, children[family[i]]...)
	}
	return family, err
}

// stat is what we need of proc_pid_stat(5).
type stat struct {
	state   byte
	parent  int
	threads int
}

// dead reports whether the process, or its first thread, has ended.
func (s stat) dead() bool { return s.state == 'Z' || s.state == 'X' || s.state == 'x' }

func readStat(dir string) (stat, error) {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return stat{}, err
	}
	return parseStat(text)
}

// parseStat goes by the last parenthesis: the name, in front of it, may hold
// anything.
func parseStat(text []byte) (stat, error) {
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 18 {
		return stat{}, errors.New("its stat is cut short")
	}
	parent, one := strconv.Atoi(string(fields[1]))
	threads, two := strconv.Atoi(string(fields[17]))
	if one != nil || two != nil || len(fields[0]) != 1 {
		return stat{}, errors.New("its stat is odd")
	}
	return stat{fields[0][0], parent, threads}, nil
}
