package procfs

import "bytes"

// accepts is the flag of a listening socket: __SO_ACCEPTCON, include/linux/net.h.
const accepts = 1 << 16

// Unix returns the inodes of the Unix sockets that have a name and listen, abstract names included. See
// unix_seq_show in net/unix/af_unix.c:
//
//	Num: RefCount Protocol Flags Type St Inode Path
func (r Root) Unix() (inodes []uint32, err error) {
	named := false // the socket of the last row
	err = r.eachLine("net/unix", "Num", func(line []byte) bool {
		r := newRow(line)
		flags, inode := r.number(r.fields[3], 16), r.number(r.fields[6], 10)
		if r.bad {
			return named // a path may hold newlines, and the kernel prints them
		}
		named = r.fields[7] != nil || bytes.HasSuffix(line, []byte(" ")) // and then a newline
		if named && flags&accepts != 0 {
			inodes = append(inodes, inode)
		}
		return true
	})
	return inodes, err
}
