package scope

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// root is the id of the hierarchy's root, which every socket shows where
// version 2 has no groups (a host with version 1).
const root = 1

// CgroupIDs are our control group in version 2's hierarchy and those below it.
// An id is the inode number of the group's directory.
type CgroupIDs struct {
	Own   uint64 // as a socket of our own shows it; 0: none could be asked
	Below []uint64
	Err   error // why Below may not be all
}

// usable reports whether our sockets can be told by the id.
func (c CgroupIDs) usable() bool { return c.Own > root }

func (c CgroupIDs) set() map[uint64]struct{} {
	if !c.usable() {
		return nil
	}
	set := map[uint64]struct{}{c.Own: {}}
	for _, id := range c.Below {
		set[id] = struct{}{}
	}
	return set
}

// readCgroups looks for the groups below ours, whose id a socket showed.
func readCgroups(proc string, own uint64) CgroupIDs {
	ids := CgroupIDs{Own: own}
	if !ids.usable() {
		return ids
	}
	dir, err := ownGroup(proc, own)
	if err == nil {
		ids.Below, err = below(dir)
	}
	if err != nil {
		ids.Err = fmt.Errorf("cannot list the control groups below ours: %w", err)
	}
	return ids
}

// ownGroup is the directory of our group: where /proc/self/cgroup says, or,
// where a mount from outside our cgroup namespace hides that, any that has the id.
func ownGroup(proc string, own uint64) (string, error) {
	membership, err := os.ReadFile(filepath.Join(proc, "self/cgroup"))
	if err != nil {
		return "", err
	}
	mounts, err := readMounts(proc)
	if err != nil {
		return "", err
	}
	path := groupPath(string(membership))
	for _, m := range mounts {
		if dir, ok := m.locate(path); m.kind == "cgroup2" && ok && inode(dir) == own {
			return dir, nil
		}
	}
	for _, m := range mounts {
		if m.kind == "cgroup2" {
			if dir, found := search(m.point, own); found {
				return dir, nil
			}
		}
	}
	return "", errors.New("our own is not to be found in a cgroup2 file system")
}

// groupPath is the path in the line "0::PATH" of /proc/self/cgroup, "" if there
// is none.
func groupPath(membership string) string {
	for line := range strings.Lines(membership) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSuffix(path, "\n")
		}
	}
	return ""
}

// inode is 0 where there is no such directory.
func inode(dir string) uint64 {
	var stat unix.Stat_t
	if unix.Stat(dir, &stat) != nil {
		return 0
	}
	return stat.Ino
}

// search finds the directory with the inode number.
func search(top string, number uint64) (dir string, found bool) {
	filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil
		}
		if inode(path) == number {
			dir, found = path, true
			return fs.SkipAll
		}
		return nil
	})
	return dir, found
}

// below lists the inode numbers of the directories below top.
func below(top string) (ids []uint64, err error) {
	err = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path != top:
			return nil // removed meanwhile
		case err != nil:
			return err
		case entry.IsDir() && path != top:
			if id := inode(path); id != 0 {
				ids = append(ids, id)
			}
		}
		return nil
	})
	return ids, err
}
