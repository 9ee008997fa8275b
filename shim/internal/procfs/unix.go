package procfs

import "io"

// accepts is the flag of a listening socket: __SO_ACCEPTCON, include/linux/net.h.
const accepts = 1 << 16

// Unix is a Unix socket that listens.
type Unix struct {
	Inode uint32
	Path  string // as passed to bind(2), perhaps a relative path; of an abstract name, "@" and the name
}

// parseUnix lists the sockets of net/unix that listen. A zero byte in an abstract name is
// printed as another "@". See unix_seq_show in net/unix/af_unix.c:
//
//	Num: RefCount Protocol Flags Type St Inode Path
func parseUnix(file io.Reader) (found []Unix, err error) {
	var named, kept bool // the socket of the last row
	err = eachLine(file, "Num", func(line []byte) bool {
		f := fields{rest: line}
		f.label()
		f.hex(8)
		f.hex(8)
		flags := f.hex(8)
		f.hex(4)
		f.hex(2)
		inode := f.decimal()
		switch {
		case !f.bad:
			named = len(f.rest) > 0 // even if the path begins with a newline
			kept = named && flags&accepts != 0
			if kept {
				found = append(found, Unix{inode, string(f.rest[1:])})
			}
		case kept: // a path may hold newlines, and the kernel prints them
			found[len(found)-1].Path += "\n" + string(line)
		case !named:
			return false
		}
		return true
	})
	return found, err
}
