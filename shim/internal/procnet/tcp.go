package procnet

import (
	"io"
	"net/netip"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// ParseTCP appends the sockets of net/tcp or net/tcp6 to dst. The table lacks the backlog of
// a listener: Unsent is 0. Sockets in an accept queue, in SYN_RECV and in TIME_WAIT have no
// inode.
func ParseTCP(dst []tcp.Socket, r io.Reader) ([]tcp.Socket, error) {
	err := eachRow(r, func(r row) bool {
		dst = append(dst, tcp.Socket{
			State:  tcp.State(r.state),
			Local:  r.local,
			Remote: r.remote,
			Unread: r.unread,
			Unsent: r.unsent,
			Inode:  r.inode,
		})
		dst[len(dst)-1].DiscountFIN()
		return r.state < 16 // gVisor has a state 0; the kernel has room for new states, in four bits
	})
	return dst, err
}

// PingPong calls visit with every TCP socket, and whether the kernel has the connection in
// ping-pong mode: the last data sent followed the data received so soon that it carried the
// acknowledgement, and no acknowledgement was sent alone since (inet_csk_in_pingpong_mode).
// The mode is the lowest bit of the last column but two; see get_tcp4_sock in
// net/ipv4/tcp_ipv4.c.
func (r Root) PingPong(visit func(local, remote netip.AddrPort, pingpong bool)) error {
	return r.both("tcp", func(file io.Reader) error {
		return eachRow(file, func(w row) bool {
			visit(w.local, w.remote, w.pingpong)
			return true
		})
	})
}

// eachRow calls use with the rows of a table; use returns false for an invalid row.
func eachRow(r io.Reader, use func(row) bool) error {
	l := newLines(r)
	if err := l.header("sl"); err != nil {
		return err
	}
	for {
		line, err := l.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		row, ok := parseRow(line)
		if !ok || !use(row) {
			return notSocket(l.number, line)
		}
	}
}
