package procnet

import (
	"io"
	"net/netip"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// ParseTCP appends the sockets of net/tcp or net/tcp6 to dst. A listener's
// backlog is not told: its Unsent is 0. In an accept queue, in SYN_RECV and in
// TIME_WAIT sockets have no inode.
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
		return r.state < 16 // gVisor has a 0, and the kernel may get new ones, of four bits
	})
	return dst, err
}

// Prompt tells of each TCP socket whether the last data that it sent was so soon after
// data that it carried the acknowledgement too, and none has had to be sent by itself
// since: inet_csk_in_pingpong_mode, the lowest bit of the table's last but two (see
// get_tcp4_sock in net/ipv4/tcp_ipv4.c).
func (r Root) Prompt(tell func(local, remote netip.AddrPort, prompt bool)) error {
	return r.both("tcp", func(file io.Reader) error {
		return eachRow(file, func(w row) bool {
			tell(w.local, w.remote, w.prompt)
			return true
		})
	})
}

// eachRow gives the rows of a table to use, which reports whether one is sound.
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
