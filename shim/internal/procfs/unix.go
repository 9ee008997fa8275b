package procfs

// accepts is the flag of a listening socket: __SO_ACCEPTCON, include/linux/net.h.
const accepts = 1 << 16

// Unix returns the inodes of the Unix sockets that have a name and listen, abstract names included. See
// unix_seq_show in net/unix/af_unix.c:
//
//	Num: RefCount Protocol Flags Type St Inode Path
func (r Root) Unix() (inodes []uint32, err error) {
	named := false // the socket of the last row
	err = r.eachLine("net/unix", "Num", func(line []byte) bool {
		f := fields{rest: line}
		f.pair()
		f.skip(2)
		flags := f.hex(f.next(), 8)
		f.skip(2)
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
