package procfs

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// longest is the maximum length of a line in bytes; the kernel's lines have a few hundred.
const longest = 16 << 10

// The errors of a file that is not a table, or not whole.
var (
	errHeader = errors.New("the table's header is missing")
	errCut    = errors.New("the last line is cut short")
)

// eachLine calls use with the lines below a header, whose first word is given. A line is
// valid during the call. use returns false for a line that is no socket.
func eachLine(file io.Reader, header string, use func(line []byte) bool) error {
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, longest), longest)
	lines.Split(wholeLines)
	lines.Scan()
	title := bytes.TrimLeft(lines.Bytes(), " ")
	if lines.Err() == nil && !bytes.HasPrefix(title, []byte(header+" ")) {
		return errHeader
	}
	for lines.Scan() {
		if line := lines.Bytes(); !use(line) {
			return fmt.Errorf("invalid socket: %q", line[:min(len(line), 160)])
		}
	}
	return lines.Err()
}

// wholeLines splits a file into lines. The last line may have lost a number's end if its
// newline is missing.
func wholeLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	end := bytes.IndexByte(data, '\n')
	switch {
	case end >= 0:
		return end + 1, data[:end], nil
	case atEOF && len(data) > 0:
		return 0, nil, errCut
	}
	return 0, nil, nil
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

// label passes over a field that a colon ends.
func (f *fields) label() {
	if !bytes.HasSuffix(f.next(), []byte(":")) {
		f.bad = true
	}
}

// decimal reads a number of up to 32 bits.
func (f *fields) decimal() uint32 {
	n, err := strconv.ParseUint(string(f.next()), 10, 32)
	f.bad = f.bad || err != nil
	return uint32(n)
}

// hex reads a number of exactly so many hexadecimal digits, at most eight.
func (f *fields) hex(digits int) uint32 { return f.hexOf(f.next(), digits) }

func (f *fields) hexOf(text []byte, digits int) uint32 {
	n, err := strconv.ParseUint(string(text), 16, 32)
	f.bad = f.bad || err != nil || len(text) != digits
	return uint32(n)
}

// pair returns the parts of a field before and after its colon.
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
		binary.NativeEndian.PutUint32(raw[4*i:], f.hexOf(digits[8*i:8*i+8], 8))
	}
	addr := netip.AddrFrom16(raw).Unmap()
	if len(digits) == 8 {
		addr = netip.AddrFrom4([4]byte(raw[:4]))
	}
	return netip.AddrPortFrom(addr, uint16(f.hexOf(port, 4)))
}

// row is a line of the tables of TCP and UDP:
//
//	sl: local remote st tx_queue:rx_queue tr:when retrnsmt uid timeout inode ref pointer rto ato ack ...
//
// See get_tcp4_sock in net/ipv4/tcp_ipv4.c, udp4_format_sock in net/ipv4/udp.c.
type row struct {
	tcp.Socket
	pingpong bool // see Root.PingPong
}

// parseRow reports false for a line that is no row.
func parseRow(line []byte) (r row, ok bool) {
	f := fields{rest: line}
	f.label()
	r.Local = f.address()
	r.Remote = f.address()
	r.State = tcp.State(f.hex(2))
	tx, rx := f.pair()
	r.Unsent = f.hexOf(tx, 8)
	r.Unread = f.hexOf(rx, 8)
	f.skip(2)
	f.decimal() // the uid, read only to tell a row from any other line
	f.skip(1)
	r.Inode = f.decimal()
	ok = !f.bad
	f.skip(4)
	ack := f.decimal() // 0 in rows without it
	r.pingpong = ack&1 != 0
	return r, ok
}

// eachRow calls use with the rows of a table of TCP or UDP; use returns false for a row that
// is no socket.
func eachRow(file io.Reader, use func(row) bool) error {
	return eachLine(file, "sl", func(line []byte) bool {
		r, ok := parseRow(line)
		return ok && use(r)
	})
}
