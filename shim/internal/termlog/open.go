package termlog

import (
	"errors"
	"path"

	"golang.org/x/sys/unix"
)

// openTrusted opens a regular file. In a directory to which others may write, they could
// have planted a symbolic or hard link to a file that they may not write to, so neither kind
// of link is followed there. Elsewhere links are as trustworthy as their directory:
// /dev/stderr is a link. Parent directories are followed as they are.
func openTrusted(name string, flags int) (fd int, err error) {
	dir, err := unix.Open(path.Dir(name), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	shared := othersMayWrite(dir)
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
	var at unix.Stat_t
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

// othersMayWrite reports whether users other than root and the user of this process may
// write to an open directory.
func othersMayWrite(dir int) bool {
	var at unix.Stat_t
	if unix.Fstat(dir, &at) != nil {
		return true
	}
	trusted := at.Uid == 0 || int(at.Uid) == unix.Geteuid()
	return !trusted || at.Mode&0o022 != 0
}
