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
			if dir, found := search(m.Point, own); found {
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

// search finds the directory with the inode number: dir or one below dir.
func search(dir string, number uint64) (path string, found bool) {
	if inode(dir) == number {
		return dir, true
	}
	inside, _ := subdirectories(dir) // unreadable directories are left out
	for _, sub := range inside {
		if path, found := search(sub, number); found {
			return path, true
		}
	}
	return "", false
}

// below lists the inode numbers of the directories below dir.
func below(dir string) (ids []uint64, err error) {
	inside, err := subdirectories(dir)
	if err != nil {
		return nil, err
	}
	for _, sub := range inside {
		if id := inode(sub); id != 0 {
			ids = append(ids, id)
		}
		deeper, err := below(sub)
		ids = append(ids, deeper...)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // else removed meanwhile
			return ids, err
		}
	}
	return ids, nil
}

// subdirectories returns the paths of the directories in dir, in the kernel's order. Unlike
// os.Open the function opens no epoll instance.
func subdirectories(dir string) (paths []string, err error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	opened := os.NewFile(uintptr(fd), dir)
	defer opened.Close()
	entries, err := opened.ReadDir(-1)
	for _, entry := range entries {
		if entry.IsDir() {
			paths = append(paths, filepath.Join(dir, entry.Name()))
		}
	}
	return paths, err
}
