package procnet

import (
	"bytes"
	"encoding/binary"
	"net/netip"
)

// row is a line of the tables of TCP and UDP:
//
//	sl: local remote st tx_queue:rx_queue tr:when retrnsmt uid timeout inode ref pointer rto ato ack ...
//
// See get_tcp4_sock in net/ipv4/tcp_ipv4.c, udp4_format_sock in net/ipv4/udp.c.
type row struct {
	local, remote  netip.AddrPort
	state          uint32
	unsent, unread uint32
	inode          uint32
	pingpong       bool // see Root.PingPong
}

// parseRow reports false for a line that is no row.
func parseRow(line []byte) (r row, ok bool) {
	var fields [15][]byte
	for i := range fields {
		fields[i], line = cut(line)
	}
	var good [6]bool
	r.local, good[0] = address(fields[1])
	r.remote, good[1] = address(fields[2])
	r.state, good[2] = hex(fields[3], 2)
	r.unsent, r.unread, good[3] = queues(fields[4])
	_, good[4] = decimal(fields[7]) // the uid, read only to tell a row from any other line
	r.inode, good[5] = decimal(fields[9])
	ack, known := decimal(fields[14])
	r.pingpong = known && ack&1 != 0
	return r, bytes.HasSuffix(fields[0], []byte(":")) && good == [6]bool{true, true, true, true, true, true}
}

// queues reads tx_queue:rx_queue.
func queues(field []byte) (tx, rx uint32, ok bool) {
	before, after, found := bytes.Cut(field, []byte(":"))
	tx, one := hex(before, 8)
	rx, two := hex(after, 8)
	return tx, rx, found && one && two
}

// address reads ADDRESS:PORT. An address is printed as 32 bit words in the machine's byte
// order, four words for IPv6; the port is printed as a number.
func address(field []byte) (netip.AddrPort, bool) {
	digits, last, found := bytes.Cut(field, []byte(":"))
	port, ok := hex(last, 4)
	if !found || !ok || len(digits) != 8 && len(digits) != 32 {
		return netip.AddrPort{}, false
	}
	var raw [16]byte
	for i := range len(digits) / 8 {
		word, ok := hex(digits[8*i:8*i+8], 8)
		if !ok {
			return netip.AddrPort{}, false
		}
		binary.NativeEndian.PutUint32(raw[4*i:], word)
	}
	addr := netip.AddrFrom16(raw).Unmap()
	if len(digits) == 8 {
		addr = netip.AddrFrom4([4]byte(raw[:4]))
	}
	return netip.AddrPortFrom(addr, uint16(port)), true
}
