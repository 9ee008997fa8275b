package procnet

import (
	"bytes"
	"io"
)

// accepts is the flag of a listening socket: __SO_ACCEPTCON, include/linux/net.h.
const accepts = 1 << 16

// Unix is a Unix socket that listens.
type Unix struct {
	Inode uint32
	Path  string // as passed to bind(2), perhaps a relative path; of an abstract name, "@" and the name
}

// ParseUnix lists the sockets of net/unix that listen. A zero byte in an abstract name is
// printed as another "@".
func ParseUnix(r io.Reader) (found []Unix, err error) {
	l := newLines(r)
	if err := l.header("Num"); err != nil {
		return nil, err
	}
	var last struct{ named, kept bool }
	for {
		line, err := l.next()
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
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
			return nil, notSocket(l.number, line)
		}
	}
}

type unixRow struct {
	flags, inode uint32
	named        bool   // even if the path begins with a newline
	path         string // of listening sockets
}

// parseUnixRow reports false for a line that is no row. See unix_seq_show in
// net/unix/af_unix.c: "Num: RefCount Protocol Flags Type St Inode Path".
func parseUnixRow(line []byte) (row unixRow, ok bool) {
	var fields [7][]byte
	for i := range fields {
		fields[i], line = cut(line)
	}
	var good [6]bool
	for i, digits := range []int{8, 8, 8, 4, 2} {
		_, good[i] = hex(fields[i+1], digits)
	}
	row.flags, _ = hex(fields[3], 8)
	row.inode, good[5] = decimal(fields[6])
	row.named = len(line) > 0
	if row.named && row.flags&accepts != 0 {
		row.path = string(line[1:])
	}
	return row, bytes.HasSuffix(fields[0], []byte(":")) && good == [6]bool{true, true, true, true, true, true}
}
