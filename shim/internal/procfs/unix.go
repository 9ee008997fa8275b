package procfs

import "io"

// accepts is the flag of a listening socket: __SO_ACCEPTCON, include/linux/net.h.
const accepts = 1 << 16

// parseUnix returns the inodes of the sockets of net/unix that have a name and listen. See unix_seq_show
// in net/unix/af_unix.c:
//
//	Num: RefCount Protocol Flags Type St Inode Path
func parseUnix(file io.Reader) (inodes []uint32, err error) {
	named := false // the socket of the last row
	err = eachLine(file, "Num", func(line []byte) bool {
		f := fields{rest: line}
		f.label()
		f.hex(8)
		f.hex(8)
		flags := f.hex(8)
		f.hex(4)
		f.hex(2)
		inode := f.decimal()
		if f.bad {
			return named // a path may hold newlines, and the kernel prints them
		}
		named = len(f.rest) > 0
		if named && flags&accepts != 0 {
			inodes = append(inodes, inode)
		}
		return true
	})
	return inodes, err
}
