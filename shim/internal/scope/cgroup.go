package scope

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
)

// rootCgroup is the id of the hierarchy's root, which every socket shows on a host whose
// version 2 hierarchy has no groups (a host with version 1).
const rootCgroup = 1

// checkCgroup returns an error unless our control group in the hierarchy of version 2 is known to have no
// group below, whose sockets are ours too. The group has the id that a socket showed: the inode number of the
// group's directory. A mount shows our own group, or the whole hierarchy.
func checkCgroup(proc procfs.Root, own uint64) error {
	mounts, err := proc.Mounts()
	for _, m := range mounts {
		for _, dir := range []string{m.Point, m.Point + proc.CgroupPath()} {
			var stat unix.Stat_t
			if m.Kind != "cgroup2" || unix.Stat(dir, &stat) != nil || stat.Ino != own {
				continue
			}
			entries, err := os.ReadDir(dir)
			if slices.ContainsFunc(entries, fs.DirEntry.IsDir) {
				err = errors.New("there are control groups below ours")
			}
			return err
		}
	}
	return cmp.Or(err, errors.New("cannot find our own control group in a cgroup2 file system"))
}
