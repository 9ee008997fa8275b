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

// cgroups are our control group in the hierarchy of version 2, and the groups below, by id: the inode
// number of the group's directory.
type cgroups map[uint64]bool

// readCgroups finds the groups below our own, which has the id that a socket showed, 0 if it is unknown.
// Without groups ids do not tell our sockets from others. The error is why groups below ours may be
// missing.
func readCgroups(proc procfs.Root, own uint64) (cgroups, error) {
	if own <= rootCgroup {
		return nil, nil
	}
	ids := cgroups{own: true}
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
		err = fmt.Errorf("cannot list the control groups below ours: %w", err)
	}
	return ids, err
}

// add adds a group, if it is below ours, and those below, and reports whether one of them is ours. A
// mount may show any part of the hierarchy, under any path. What cannot be read elsewhere is left out.
// filepath.WalkDir would sort the groups, which costs 15 KB of program.
func (c cgroups) add(dir string, isBelow bool) (found bool, err error) {
	id := inode(dir)
	found = isBelow || c[id]
	if found && id != 0 { // else removed meanwhile
		c[id] = true
	}
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
