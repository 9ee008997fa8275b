package sockdiag

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// lookupBatch is how many lookups are requested at a time: the kernel's replies have to
// fit into the socket's receive buffer.
const lookupBatch = 32

// Lookup visits the present state of each connection of list that still exists, with the
// connection's index. A lookup takes some microseconds, whereas a dump goes through the
// hash table of all sockets, of up to 524 288 buckets, once for each address family. The
// socket is valid until visit returns.
func (c *Conn) Lookup(list []tcp.Socket, visit func(i int, s *tcp.Socket)) error {
	for first := 0; first < len(list); first += lookupBatch {
		batch := list[first:min(first+lookupBatch, len(list))]
		if err := c.lookup(batch, func(i int, s *tcp.Socket) { visit(first+i, s) }); err != nil {
			return err
		}
	}
	return nil
}

// lookup visits the connections of a batch. The kernel replies to each request by a socket or
// an error. Request i has the sequence number of the batch plus i.
func (c *Conn) lookup(batch []tcp.Socket, visit func(i int, s *tcp.Socket)) error {
	deadline := time.Now().Add(c.timeout)
	if err := c.discard(deadline); err != nil {
		return err
	}
	first := c.seq + 1
	request := c.buf[:0]
	for i := range batch {
		c.seq++
		request = appendLookup(request, c.seq, &batch[i])
	}
	if err := send(c.fd, request, deadline); err != nil {
		return err
	}
	c.replyPending = true
	for range batch {
		n, err := receive(c.fd, c.buf, 0, deadline)
		if err != nil {
			return err
		}
		m, _, err := nextMessage(c.buf[:n])
		if err != nil {
			return err
		}
		if err := c.visitReply(m, first, visit); err != nil {
			return err
		}
	}
	c.replyPending = false
	return nil
}

// visitReply visits the connection of a reply; first is the sequence number of the batch.
// The kernel replies by ENOENT if the connection is gone, and by ESTALE if other sockets
// have the same ends.
func (c *Conn) visitReply(m message, first uint32, visit func(i int, s *tcp.Socket)) error {
	if m.kind == unix.NLMSG_ERROR {
		err := m.errno()
		if err == unix.ENOENT || err == unix.ESTALE {
			return nil
		}
		return err
	}
	if err := decodeSocket(m.payload, &c.sock); err != nil {
		return err
	}
	visit(int(m.seq-first), &c.sock)
	return nil
}

// appendLookup appends to b a request for a connection. The kernel finds IPv4 connections
// of dual-stack listeners by their IPv4 addresses; see inet_diag_find_one_icsk in
// net/ipv4/inet_diag.c.
func appendLookup(b []byte, seq uint32, s *tcp.Socket) []byte {
	start := len(b)
	family := uint8(unix.AF_INET)
	if s.Local.Addr().Is6() {
		family = unix.AF_INET6
	}
	b = appendEmpty(b, 0, seq, family, Query{States: AllStates, Info: true})
	native.PutUint32(b[start:], uint32(len(b)-start))
	id := b[start+idOffset:] // interface 0: any
	binary.BigEndian.PutUint16(id, s.Local.Port())
	binary.BigEndian.PutUint16(id[2:], s.Remote.Port())
	copy(id[4:], s.Local.Addr().AsSlice()) // an IPv4 address has the first four of 16 bytes
	copy(id[20:], s.Remote.Addr().AsSlice())
	native.PutUint32(id[40:], uint32(s.Cookie))
	native.PutUint32(id[44:], uint32(s.Cookie>>32))
	return b
}
