package scope

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
)

// HeldSockets reads the descriptors of our processes: of our descendants, or of the whole
// PID namespace; never the descriptors of lameduck itself. The error is why sockets may be missing.
func HeldSockets(proc procfs.Root, wholePIDNamespace bool) (Inodes, error) {
	held := Inodes{}
	pids, err := Processes(proc, wholePIDNamespace)
	for _, pid := range pids {
		if failed := held.add(proc, pid); failed != nil && err == nil {
			err = fmt.Errorf("cannot read the descriptors of process %d: %w", pid, failed)
		}
	}
	return held, err
}

// Processes lists our processes without lameduck: our descendants, or those of the whole PID
// namespace. A list with an error is good, but may be incomplete.
func Processes(proc procfs.Root, wholePIDNamespace bool) (pids []int, err error) {
	if wholePIDNamespace {
		pids, err = proc.Processes()
		return slices.DeleteFunc(pids, func(pid int) bool { return pid == os.Getpid() }), err
	}
	family, err := proc.Descendants()
	for _, p := range family {
		pids = append(pids, p.PID)
	}
	return pids, err
}

// add adds the sockets of a process. A process that has ended holds no socket: its
// directory is gone; or the process is dead and has no other thread, and its directory is
// empty or unreadable.
func (i Inodes) add(proc procfs.Root, pid int) error {
	n, err := proc.EachTarget(pid, func(_ int, target []byte) { i[SocketInode(target)] = true })
	if err == nil && n > 0 {
		return nil
	}
	p, statErr := proc.Process(pid)
	switch {
	case procfs.Gone(err), procfs.Gone(statErr), p.Dead() && p.Threads <= 1:
		return nil
	case err == nil && p.Dead():
		err = errors.New("its main thread has ended, but other threads run")
	}
	return err
}

// SocketInode returns the inode of "socket:[INODE]", 0 of any other file.
func SocketInode(target []byte) uint32 {
	digits, isSocket := bytes.CutPrefix(target, []byte("socket:["))
	inode, err := strconv.ParseUint(string(bytes.TrimSuffix(digits, []byte("]"))), 10, 32)
	if !isSocket || err != nil {
		return 0
	}
	return uint32(inode)
}
