package scope

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
	dir, err := ownGroup(proc, own)
	if err == nil {
		ids.Below, err = below(dir)
	}
	if err != nil {
		ids.Err = fmt.Errorf("cannot list the control groups below ours: %w", err)
	}
	return ids
}

// ownGroup returns the directory of our group: the path in /proc/self/cgroup, or, if a
// mount from outside our cgroup namespace hides that path, any directory with the id.
func ownGroup(proc procfs.Root, own uint64) (string, error) {
	path, err := proc.CgroupPath()
	if err != nil {
		return "", err
	}
	mounts, err := proc.Mounts()
	if err != nil {
		return "", err
	}
	for _, m := range mounts {
		if dir, ok := locate(m, path); m.Kind == "cgroup2" && ok && inode(dir) == own {
			return dir, nil
		}
	}
	for _, m := range mounts {
		if m.Kind == "cgroup2" {
			if dir := search(m.Point, own); dir != "" {
				return dir, nil
			}
		}
	}
	return "", errors.New("cannot find our own control group in a cgroup2 file system")
}

// locate returns where a mount shows a path of its file system; ok is false if the mount
// shows another part.
func locate(m procfs.Mount, path string) (dir string, ok bool) {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(m.Root, "/"))
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return filepath.Join(m.Point, rest), true
}

// inode returns the inode number of a directory, or 0.
func inode(dir string) uint64 {
	var stat unix.Stat_t
	if unix.Stat(dir, &stat) != nil {
		return 0
	}
	return stat.Ino
}

// search finds the directory with the inode number: top or one below; "" if there is none.
// Unreadable directories are left out.
func search(top string, number uint64) (found string) {
	note := func(dir string, id uint64) {
		if id == number {
			found = dir
		}
	}
	note(top, inode(top))
	_ = walk(top, note)
	return found
}

// below lists the inode numbers of the directories below top.
func below(top string) (ids []uint64, err error) {
	err = walk(top, func(_ string, id uint64) {
		if id != 0 { // else removed meanwhile
			ids = append(ids, id)
		}
	})
	return ids, err
}

// walk calls visit with the directories below top and their inode numbers. filepath.WalkDir would
// sort them, which costs 15 KB of program.
func walk(top string, visit func(dir string, id uint64)) error {
	file, err := os.Open(top)
	if err != nil {
		return err
	}
	defer file.Close()
	entries, err := file.ReadDir(-1)
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		dir := filepath.Join(top, entry.Name())
		visit(dir, inode(dir))
		if failed := walk(dir, visit); err == nil && !errors.Is(failed, fs.ErrNotExist) { // removed meanwhile
			err = failed
		}
	}
	return err
}
