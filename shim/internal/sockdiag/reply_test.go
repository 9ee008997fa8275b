package sockdiag

import (
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// fakeConn returns a Conn that receives the given datagrams.
func fakeConn(t *testing.T, datagrams ...[]byte) *Conn {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fds[1]) })
	limit := unix.NsecToTimeval(int64(20 * time.Millisecond))
	must(t, unix.SetsockoptTimeval(fds[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit))
	for _, d := range datagrams {
		_, err := unix.Write(fds[1], d)
		must(t, err)
	}
	c := &Conn{fd: fds[0], buf: make([]byte, 4096)}
	t.Cleanup(func() { c.Close() })
	return c
}

// encodeMessage returns a netlink message.
func encodeMessage(kind, flags uint16, seq uint32, payload []byte) []byte {
	b := native.AppendUint32(nil, uint32(headerLen+len(payload)))
	b = native.AppendUint16(b, kind)
	b = native.AppendUint16(b, flags)
	b = native.AppendUint32(b, seq)
	b = native.AppendUint32(b, 0)
	return append(b, payload...)
}

// encodeError returns a message of kind NLMSG_ERROR or NLMSG_DONE.
func encodeError(kind uint16, seq uint32, err unix.Errno) []byte {
	return encodeMessage(kind, 0, seq, native.AppendUint32(nil, -uint32(err)))
}

// encodeSocket returns the message of an IPv4 socket with the given port.
func encodeSocket(flags uint16, seq uint32, port byte) []byte {
	payload := make([]byte, socketLen)
	payload[0] = unix.AF_INET
	payload[1] = byte(tcp.Established)
	payload[5] = port
	return encodeMessage(unix.SOCK_DIAG_BY_FAMILY, flags, seq, payload)
}

func done(seq uint32) []byte { return encodeError(unix.NLMSG_DONE, seq, 0) }

// TestReplies tests Dump with the replies of many kernels.
func TestReplies(t *testing.T) {
	const intr = unix.NLM_F_DUMP_INTR
	join := func(b ...[]byte) []byte { return slices.Concat(b...) }
	for _, c := range []struct {
		name      string
		datagrams [][]byte
		ports     []byte // visited
		want      error
	}{
		{"nothing", [][]byte{done(1), done(2)}, nil, nil},
		{"in one", [][]byte{join(encodeSocket(0, 1, 5), encodeSocket(0, 1, 6), done(1)), done(2)}, []byte{5, 6}, nil},
		{"in parts", [][]byte{encodeSocket(0, 1, 5), encodeSocket(0, 1, 6), done(1), join(encodeSocket(0, 2, 7), done(2))}, []byte{5, 6, 7}, nil},
		{"another port", [][]byte{join(encodeSocket(0, 1, 9), encodeSocket(0, 1, 6), done(1)), done(2)}, []byte{6}, nil},
		{"messages after the end", [][]byte{join(done(1), encodeSocket(0, 1, 5)), done(2)}, nil, nil},
		{"no operation", [][]byte{encodeMessage(unix.NLMSG_NOOP, 0, 1, nil), done(1), done(2)}, nil, nil},
		{"interrupted", [][]byte{join(encodeSocket(intr, 1, 5), encodeSocket(0, 1, 6), done(1)), join(encodeSocket(0, 2, 7), done(2))}, []byte{5, 6, 7}, ErrInterrupted},
		{"interrupted at its end", [][]byte{done(1), join(encodeSocket(0, 2, 7), encodeMessage(unix.NLMSG_DONE, intr, 2, nil))}, []byte{7}, ErrInterrupted},
		{"no inet_diag", [][]byte{encodeError(unix.NLMSG_ERROR, 1, unix.ENOENT)}, nil, unix.ENOENT},
		{"not allowed", [][]byte{encodeError(unix.NLMSG_ERROR, 1, unix.EACCES)}, nil, unix.EACCES},
		{"not permitted", [][]byte{encodeError(unix.NLMSG_ERROR, 1, unix.EPERM)}, nil, unix.EPERM},
		{"an error at the end", [][]byte{join(encodeSocket(0, 1, 5), encodeError(unix.NLMSG_DONE, 1, unix.ENOMEM))}, []byte{5}, unix.ENOMEM},
		{"no IPv6", [][]byte{join(encodeSocket(0, 1, 5), done(1)), encodeError(unix.NLMSG_ERROR, 2, unix.ENOENT)}, []byte{5}, nil},
		{"no IPv6, interrupted", [][]byte{join(encodeSocket(intr, 1, 5), done(1)), encodeError(unix.NLMSG_ERROR, 2, unix.EAFNOSUPPORT)}, []byte{5}, ErrInterrupted},
		{"IPv6 not allowed", [][]byte{done(1), encodeError(unix.NLMSG_ERROR, 2, unix.EACCES)}, nil, unix.EACCES},
		{"no reply", nil, nil, unix.ETIMEDOUT},
		{"no reply after a part", [][]byte{encodeSocket(0, 1, 5)}, []byte{5}, unix.ETIMEDOUT},
		{"cut", [][]byte{join(encodeSocket(0, 1, 5), encodeSocket(0, 1, 6)[:30])}, []byte{5}, ErrMalformed},
		{"too long", [][]byte{join(encodeMessage(unix.NLMSG_NOOP, 0, 1, make([]byte, 4096-headerLen)), encodeSocket(0, 1, 5)), done(1), done(2)}, nil, ErrMalformed},
		{"another type", [][]byte{encodeMessage(99, 0, 1, nil)}, nil, ErrMalformed},
		{"a short socket", [][]byte{encodeMessage(unix.SOCK_DIAG_BY_FAMILY, 0, 1, make([]byte, 71))}, nil, ErrMalformed},
		{"a socket without a family", [][]byte{encodeMessage(unix.SOCK_DIAG_BY_FAMILY, 0, 1, make([]byte, 72))}, nil, ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := fakeConn(t, c.datagrams...)
			var visited []byte
			err := conn.Dump(Query{States: AllStates, Ports: []uint16{7, 6, 5}}, func(s *tcp.Socket) {
				visited = append(visited, byte(s.Local.Port()))
			})
			if !errors.Is(err, c.want) || !slices.Equal(visited, c.ports) {
				t.Errorf("Dump visits ports %v, %v; want %v, %v", visited, err, c.ports, c.want)
			}
		})
	}
}

// TestDumpAfterError tests a dump after an error: the rest of the earlier reply is left out.
func TestDumpAfterError(t *testing.T) {
	c := fakeConn(t, []byte("nonsense"), encodeSocket(0, 1, 5), make([]byte, 5000), done(1))
	visit := func(s *tcp.Socket) { t.Errorf("visited %+v", *s) }
	if err := c.Dump(Query{}, visit); !errors.Is(err, ErrMalformed) {
		t.Errorf("first Dump = %v, want ErrMalformed", err)
	}
	netns.Need(t) // the socket is now the kernel's
	if err := c.Dump(Query{Ports: []uint16{1}}, visit); err != nil {
		t.Errorf("second Dump = %v", err)
	}
}

// TestOnlyTheKernel tests the receive timeout, and refused messages of other sockets.
func TestOnlyTheKernel(t *testing.T) {
	c := openConn(t)
	limit, err := unix.GetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO)
	must(t, err)
	if limit.Nano() != int64(dumpTimeout) {
		t.Errorf("SO_RCVTIMEO = %v, want %v", time.Duration(limit.Nano()), dumpTimeout)
	}
	name, err := unix.Getsockname(c.fd)
	must(t, err)
	other, err := newSocket()
	must(t, err)
	defer unix.Close(other)
	if err := unix.Sendto(other, done(1), 0, name); err != unix.ECONNREFUSED && err != unix.EPERM {
		t.Errorf("sending from another socket = %v, want ECONNREFUSED or EPERM", err)
	}
}
