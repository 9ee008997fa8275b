package scope

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
)

// rootCgroup is the id of the hierarchy's root, which every socket shows on a host whose
// version 2 hierarchy has no groups (a host with version 1).
const rootCgroup = 1

// CgroupIDs are the ids of our control group in the hierarchy of version 2, and of the
// groups below. An id is the inode number of the group's directory.
type CgroupIDs struct {
	Own   uint64 // as a socket of our own shows it; 0: unknown
	Below []uint64
	Err   error // why Below may not be complete
}

// usable reports whether the id tells our sockets from others.
func (c CgroupIDs) usable() bool { return c.Own > rootCgroup }

func (c CgroupIDs) set() map[uint64]bool {
	if !c.usable() {
		return nil
	}
	set := map[uint64]bool{c.Own: true}
	for _, id := range c.Below {
		set[id] = true
	}
	return set
}

// readCgroups finds the groups below our own, which has the id that a socket showed.
func readCgroups(proc procfs.Root, own uint64) CgroupIDs {
	ids := CgroupIDs{Own: own}
	if !ids.usable() {
		return ids
	}
	mounts, err := proc.Mounts()
	found := false
	for _, m := range mounts {
		if m.Kind == "cgroup2" && !found {
			found, err = ids.add(m.Point, false)
		}
	}
	if !found {
		err = cmp.Or(err, errors.New("cannot find our own control group in a cgroup2 file system"))
	}
	if err != nil {
		ids.Err = fmt.Errorf("cannot list the control groups below ours: %w", err)
	}
	return ids
}

// add adds a group, if it is below ours, and those below, and reports whether one of them is ours. A
// mount may show any part of the hierarchy, under any path. What cannot be read elsewhere is left out.
// filepath.WalkDir would sort the groups, which costs 15 KB of program.
func (c *CgroupIDs) add(dir string, isBelow bool) (found bool, err error) {
	id := inode(dir)
	if isBelow && id != 0 { // else removed meanwhile
		c.Below = append(c.Below, id)
	}
	found = isBelow || id == c.Own
	file, err := os.Open(dir)
	var entries []os.DirEntry
	if err == nil {
		defer file.Close()
		entries, err = file.ReadDir(-1)
	}
	if !found || errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	isBelow = found
	for _, entry := range entries {
		if entry.IsDir() {
			ours, failed := c.add(dir+"/"+entry.Name(), isBelow)
			found, err = found || ours, cmp.Or(err, failed)
		}
	}
	return found, err
}

// inode returns the inode number of a directory, or 0.
func inode(dir string) uint64 {
	var stat unix.Stat_t
	if unix.Stat(dir, &stat) != nil {
		return 0
	}
	return stat.Ino
}
