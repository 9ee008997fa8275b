package truth

import (
	"encoding/binary"
	"net"

	"golang.org/x/sys/unix"
)

// syn sends a SYN from an address that no host has: the server's SYN-ACK gets no answer,
// and the kernel repeats it for about a minute.
func syn(number int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	from := net.IPv4(10, 7, byte(number>>8), byte(number)).To4()
	to := &unix.SockaddrInet4{Addr: [4]byte(serverEnd.To4())}
	return unix.Sendto(fd, synPacket(from, serverEnd.To4(), uint16(1024+number%60000)), 0, to)
}

// synPacket returns an IPv4 packet with a SYN. The kernel fills in the IPv4 checksum and
// length, see raw(7).
func synPacket(from, to net.IP, fromPort uint16) []byte {
	const ipLen, tcpLen = 20, 20
	p := make([]byte, ipLen+tcpLen)
	p[0] = 0x45 // version 4, a header of five words
	p[8] = 64   // time to live
	p[9] = unix.IPPROTO_TCP
	copy(p[12:], from)
	copy(p[16:], to)
	segment := p[ipLen:]
	binary.BigEndian.PutUint16(segment[0:], fromPort)
	binary.BigEndian.PutUint16(segment[2:], port)
	binary.BigEndian.PutUint32(segment[4:], 12345)  // sequence number
	segment[12], segment[13] = tcpLen/4<<4, 1<<1    // header length, SYN
	binary.BigEndian.PutUint16(segment[14:], 64240) // window
	binary.BigEndian.PutUint16(segment[16:], checksum(from, to, segment))
	return p
}

// checksum returns TCP's checksum of a segment of even length over the IPv4 pseudo-header.
func checksum(from, to net.IP, segment []byte) uint16 {
	sum := uint32(unix.IPPROTO_TCP) + uint32(len(segment))
	for _, part := range [][]byte{from, to, segment} {
		for i := 0; i < len(part); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(part[i:]))
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
