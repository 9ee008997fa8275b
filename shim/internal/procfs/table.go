package procfs

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// longest is the maximum length of a line in bytes; the kernel's lines have a few hundred.
const longest = 16 << 10

// errHeader is the error of a file that is not a table.
var errHeader = errors.New("the table's header is missing")

// eachLine calls use with the lines of a table below its header, whose first word is given. A line is
// valid during the call. use returns false for a line that is no socket.
func (r Root) eachLine(name, header string, use func(line []byte) bool) error {
	path := r.path(system, name)
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot open %q: %w", path, errors.Unwrap(err)) // without the path
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, longest)
	line, err := lines.ReadSlice('\n')
	if err == nil && !bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte(header+" ")) {
		err = errHeader
	}
	for err == nil {
		line, err = lines.ReadSlice('\n')
		switch {
		case err == io.EOF && len(line) == 0: // else the line may have lost a number's end
			return nil
		case err == nil && !use(line[:len(line)-1]):
			err = fmt.Errorf("invalid socket: %.160q", line)
		}
	}
	return fmt.Errorf("cannot read %q: %w", path, err)
}

// fields reads the fields of a line, which blanks separate.
type fields struct {
	rest []byte
	bad  bool // a field was not of its form
}

// next returns the next field, or "" after the last.
func (f *fields) next() []byte {
	line := bytes.TrimLeft(f.rest, " ")
	end := bytes.IndexByte(line, ' ')
	if end < 0 {
		end = len(line)
	}
	f.rest = line[end:]
	return line[:end]
}

// skip passes over n fields.
func (f *fields) skip(n int) {
	for range n {
		f.next()
	}
}

// decimal reads the next field, a number of up to 32 bits.
func (f *fields) decimal() uint32 {
	n, err := strconv.ParseUint(string(f.next()), 10, 32)
	f.bad = f.bad || err != nil
	return uint32(n)
}

// hex reads a number of exactly so many hexadecimal digits, at most eight.
func (f *fields) hex(text []byte, digits int) uint32 {
	n, err := strconv.ParseUint(string(text), 16, 32)
	f.bad = f.bad || err != nil || len(text) != digits
	return uint32(n)
}

// pair returns the parts of the next field before and after its colon.
func (f *fields) pair() (before, after []byte) {
	before, after, found := bytes.Cut(f.next(), []byte(":"))
	f.bad = f.bad || !found
	return before, after
}

// address reads ADDRESS:PORT. An address is printed as 32 bit words in the machine's byte
// order, four words for IPv6; the port is printed as a number.
func (f *fields) address() netip.AddrPort {
	digits, port := f.pair()
	if len(digits) != 8 && len(digits) != 32 {
		f.bad = true
		return netip.AddrPort{}
	}
	var raw [16]byte
	for i := range len(digits) / 8 {
		binary.NativeEndian.PutUint32(raw[4*i:], f.hex(digits[8*i:8*i+8], 8))
	}
	addr := netip.AddrFrom16(raw).Unmap()
	if len(digits) == 8 {
		addr = netip.AddrFrom4([4]byte(raw[:4]))
	}
	return netip.AddrPortFrom(addr, uint16(f.hex(port, 4)))
}

// parseRow parses a line of the tables of TCP and UDP, and reports false for a line that is no row:
//
//	sl: local remote st tx_queue:rx_queue tr:when retrnsmt uid timeout inode ref pointer rto ato ack ...
//
// The lowest bit of ack is Info.PingPong. See get_tcp4_sock in net/ipv4/tcp_ipv4.c, udp4_format_sock in
// net/ipv4/udp.c.
func parseRow(line []byte) (s tcp.Socket, ok bool) {
	f := fields{rest: line}
	f.pair()
	s.Local = f.address()
	s.Remote = f.address()
	s.State = tcp.State(f.hex(f.next(), 2))
	tx, rx := f.pair()
	s.Unsent = f.hex(tx, 8)
	s.Unread = f.hex(rx, 8)
	f.skip(2)
	f.decimal() // the uid, read only to tell a row from any other line
	f.next()
	s.Inode = f.decimal()
	ok = !f.bad
	f.skip(4)
	s.Info.PingPong = f.decimal()&1 != 0 // 0 in rows without it
	return s, ok
}

// eachSocket calls use with the rows of a table of TCP or UDP; use returns false for a row that
// is no socket.
func (r Root) eachSocket(name string, use func(*tcp.Socket) bool) error {
	var s tcp.Socket
	return r.eachLine(name, "sl", func(line []byte) (ok bool) {
		s, ok = parseRow(line)
		return ok && use(&s)
	})
}
