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
// printed as another "@".
func parseUnix(file io.Reader) (found []Unix, err error) {
	var last struct{ named, kept bool }
	err = eachLine(file, "Num", func(line []byte) bool {
		socket, ok := parseUnixRow(line)
		switch {
		case ok:
			last.named = socket.named
			last.kept = socket.flags&accepts != 0 && socket.named
			if last.kept {
				found = append(found, Unix{socket.inode, socket.path})
			}
		case last.kept: // a path may hold newlines, and the kernel prints them
			found[len(found)-1].Path += "\n" + string(line)
		case !last.named:
			return false
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

type unixRow struct {
	flags, inode uint32
	named        bool   // even if the path begins with a newline
	path         string // of listening sockets
}

// parseUnixRow reports false for a line that is no row. See unix_seq_show in
// net/unix/af_unix.c: "Num: RefCount Protocol Flags Type St Inode Path".
func parseUnixRow(line []byte) (row unixRow, ok bool) {
	f := fields{rest: line}
	f.label()
	f.hex(8)
	f.hex(8)
	row.flags = f.hex(8)
	f.hex(4)
	f.hex(2)
	row.inode = f.decimal()
	row.named = len(f.rest) > 0
	if row.named && row.flags&accepts != 0 {
		row.path = string(f.rest[1:])
	}
	return row, !f.bad
}
