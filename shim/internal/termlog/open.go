package termlog

import (
	"errors"
	"path"

	"golang.org/x/sys/unix"
)

// openTrusted opens a regular file. In a directory to which users other than root and ours may write, they could
// have planted a symbolic or hard link to a file that they may not write to, so neither kind
// of link is followed there. Elsewhere links are as trustworthy as their directory:
// /dev/stderr is a link. Parent directories are followed as they are.
func openTrusted(name string, flags int) (fd int, err error) {
	dir, err := unix.Open(path.Dir(name), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	var at unix.Stat_t
	isOurs := unix.Fstat(dir, &at) == nil && (at.Uid == 0 || int(at.Uid) == unix.Geteuid())
	shared := !isOurs || at.Mode&0o022 != 0
	if shared {
		flags |= unix.O_NOFOLLOW
	}
	fd, err = unix.Openat(dir, path.Base(name), flags, 0o644)
	if err == unix.ELOOP && shared {
		err = errors.New("symbolic link in a directory that others may write to")
	}
	if err != nil {
		return -1, err
	}
	unix.Fstat(fd, &at) // cannot fail
	switch {
	case at.Mode&unix.S_IFMT != unix.S_IFREG:
		err = errors.New("not a regular file")
	case at.Nlink > 1 && shared:
		err = errors.New("file with several names (hard links) in a directory that others may write to")
	}
	if err != nil {
		unix.Close(fd)
	}
	return fd, err
}
