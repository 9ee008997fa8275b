package systems

import (
	"bytes"
	"fmt"
)

// File types in the mode of a file, as in inode(7).
const (
	typeDirectory = 0o040000
	typeDevice    = 0o020000 // a character device
	typeRegular   = 0o100000
)

// archive is an initramfs: a cpio archive in the "newc" format, the format that the
// kernel unpacks.
type archive struct {
	buf   bytes.Buffer
	inode int
}

func (a *archive) directory(name string)         { a.entry(name, typeDirectory|0o755, 0, 0, nil) }
func (a *archive) file(name string, data []byte) { a.entry(name, typeRegular|0o755, 0, 0, data) }
func (a *archive) device(name string, major, minor int) {
	a.entry(name, typeDevice|0o600, major, minor, nil)
}

// bytes ends and returns the archive.
func (a *archive) bytes() []byte {
	a.entry("TRAILER!!!", 0, 0, 0, nil)
	return a.buf.Bytes()
}

// entry appends a header of 13 fields, the name, and the data. The name and the data
// are each padded to a multiple of four bytes.
func (a *archive) entry(name string, mode, major, minor int, data []byte) {
	a.inode++
	const uid, gid, links, mtime, devMajor, devMinor, checksum = 0, 0, 1, 0, 0, 0, 0
	a.buf.WriteString("070701")
	for _, field := range []int{a.inode, mode, uid, gid, links, mtime, len(data),
		devMajor, devMinor, major, minor, len(name) + 1, checksum} {
		fmt.Fprintf(&a.buf, "%08X", field)
	}
	a.buf.WriteString(name + "\x00")
	a.pad()
	a.buf.Write(data)
	a.pad()
}

func (a *archive) pad() {
	for a.buf.Len()%4 != 0 {
		a.buf.WriteByte(0)
	}
}
