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
		return err
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

// row is a line of a table, cut at its blanks.
type row struct {
	fields [16][]byte
	bad    bool // a field was not of its form
}

func newRow(line []byte) (r row) {
	n := 0
	for field := range bytes.FieldsSeq(line) {
		if n < len(r.fields) {
			r.fields[n] = field
		}
		n++
	}
	return r
}

// number reads a number of up to 32 bits.
func (r *row) number(text []byte, base int) uint32 {
	n, err := strconv.ParseUint(string(text), base, 32)
	r.bad = r.bad || err != nil
	return uint32(n)
}

// pair returns the parts of a field before and after its colon.
func (r *row) pair(field int) (before, after []byte) {
	before, after, _ = bytes.Cut(r.fields[field], []byte(":"))
	return before, after
}

// address reads ADDRESS:PORT. An address is printed as 32 bit words in the machine's byte
// order, four words for IPv6; the port is printed as a number.
func (r *row) address(field int) netip.AddrPort {
	digits, port := r.pair(field)
	if len(digits) != 8 && len(digits) != 32 {
		r.bad = true
		return netip.AddrPort{}
	}
	var raw [16]byte
	for i := range len(digits) / 8 {
		binary.NativeEndian.PutUint32(raw[4*i:], r.number(digits[8*i:8*i+8], 16))
	}
	addr := netip.AddrFrom16(raw).Unmap()
	if len(digits) == 8 {
		addr = netip.AddrFrom4([4]byte(raw[:4]))
	}
	return netip.AddrPortFrom(addr, uint16(r.number(port, 16)))
}

// eachSocket calls use with the rows of a table of TCP or UDP; use returns false for a row that
// is no socket:
//
//	sl: local remote st tx_queue:rx_queue tr:when retrnsmt uid timeout inode ref pointer rto ato ack ...
//
// The lowest bit of ack is Info.PingPong. See get_tcp4_sock in net/ipv4/tcp_ipv4.c, udp4_format_sock in
// net/ipv4/udp.c.
func (r Root) eachSocket(name string, use func(*tcp.Socket) bool) error {
	var s tcp.Socket
	return r.eachLine(name, "sl", func(line []byte) bool {
		f := newRow(line)
		tx, rx := f.pair(4)
		s = tcp.Socket{
			Local: f.address(1), Remote: f.address(2), State: tcp.State(f.number(f.fields[3], 16)),
			Unsent: f.number(tx, 16), Unread: f.number(rx, 16), Inode: f.number(f.fields[9], 10),
		}
		ok := !f.bad
		s.Info.PingPong = f.number(f.fields[14], 10)&1 != 0 // 0 in rows without it
		return ok && use(&s)
	})
}
