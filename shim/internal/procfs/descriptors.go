package procfs

import "golang.org/x/sys/unix"

// Descriptors lists the open descriptors of a process.
func (r Root) Descriptors(pid int) (fds []int, err error) {
	err = numbers(r.path(pid, "fd"), func(e entry) error {
		if pid != Self || e.number != e.dir {
			fds = append(fds, e.number)
		}
		return nil
	})
	return fds, err
}

// EachTarget calls visit with every open descriptor of a process and the file behind it,
// as in proc_pid_fd(5): "socket:[INODE]", "pipe:[INODE]", or a path, cut to 64 bytes. The
// target is valid during the call. EachTarget returns how many descriptors were visited.
func (r Root) EachTarget(pid int, visit func(fd int, target []byte)) (n int, err error) {
	var buf [64]byte
	err = numbers(r.path(pid, "fd"), func(e entry) error {
		target, err := e.target(buf[:])
		if err == unix.ENOENT {
			return nil // closed meanwhile
		}
		if err != nil {
			return err
		}
		n++
		visit(e.number, target)
		return nil
	})
	return n, err
}
