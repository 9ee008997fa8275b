package scope

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Held are the sockets of which one of our processes has a descriptor.
type Held struct {
	Inodes Inodes
	Err    error // why there may be more
}

// Hold looks at our processes' descriptors: those of our descendants, or of
// everyone in our PID namespace; never at lameduck's own. proc is where proc(5) is
// mounted.
func Hold(proc string, everyone bool) Held {
	held := Held{Inodes: Inodes{}}
	pids, err := processes(proc, everyone)
	held.Err = err
	for _, pid := range pids {
		if err := held.add(filepath.Join(proc, strconv.Itoa(pid))); err != nil && held.Err == nil {
			held.Err = fmt.Errorf("cannot look at the descriptors of process %d: %w", pid, err)
		}
	}
	return held
}

// Own are the sockets of lameduck's own, from descriptor 3 up: those below are
// shared with the command.
func Own(proc string) (Inodes, error) {
	own := Inodes{}
	_, err := sockets(filepath.Join(proc, "self/fd"), 3, own)
	return own, err
}

// add looks at one process, by its directory. One that has ended holds nothing.
// A dead one's directory may be closed to us, or empty though other threads live.
func (h *Held) add(dir string) error {
	n, err := sockets(filepath.Join(dir, "fd"), 0, h.Inodes)
	if err == nil && n > 0 {
		return nil
	}
	s, statErr := readStat(dir)
	switch {
	case gone(err) || gone(statErr):
		return nil
	case statErr == nil && s.dead() && s.threads <= 1:
		return nil
	case err == nil && statErr == nil && s.dead():
		err = errors.New("its first thread has ended, others have not")
	}
	return err
}

// sockets adds the sockets among the descriptors in dir from number least up to
// found, and counts the descriptors.
func sockets(dir string, least int, found Inodes) (n int, err error) {
	file, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	names, err := file.Readdirnames(-1)
	if err != nil {
		return 0, err
	}
	var target [64]byte
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err != nil || fd < least {
			continue
		}
		length, err := unix.Readlinkat(int(file.Fd()), name, target[:])
		if err == unix.ENOENT {
			continue // closed meanwhile
		}
		if err != nil {
			return n, err
		}
		n++
		if inode, ok := socketInode(target[:length]); ok {
			found[inode] = struct{}{}
		}
	}
	return n, nil
}

// socketInode reads "socket:[INODE]".
func socketInode(target []byte) (uint32, bool) {
	digits, isSocket := bytes.CutPrefix(target, []byte("socket:["))
	digits, whole := bytes.CutSuffix(digits, []byte("]"))
	inode, err := strconv.ParseUint(string(digits), 10, 32)
	return uint32(inode), isSocket && whole && err == nil
}

// gone reports whether a process has ended and been reaped.
func gone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) }
