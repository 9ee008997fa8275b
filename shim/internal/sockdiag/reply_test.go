package sockdiag

import (
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// fakeConn returns a Conn that receives the given datagrams.
func fakeConn(t *testing.T, datagrams ...[]byte) *Conn {
	fds := testutil.Must(unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))
	c := &Conn{fd: fds[0], buf: make([]byte, 4096)}
	t.Cleanup(func() {
		c.Close()
		unix.Close(fds[1])
	})
	limit := unix.NsecToTimeval(int64(20 * time.Millisecond))
	if err := unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		t.Fatal(err)
	}
	for _, datagram := range datagrams {
		testutil.Must(unix.Write(fds[1], datagram))
	}
	return c
}

// encode returns a netlink message.
func encode(kind, flags uint16, payload []byte) []byte {
	b := native.AppendUint32(nil, uint32(headerLen+len(payload)))
	b = native.AppendUint16(b, kind)
	b = native.AppendUint16(b, flags)
	return slices.Concat(b, make([]byte, 8), payload)
}

// socketOn returns the message of a socket with a local port.
func socketOn(port byte, flags uint16) []byte {
	payload := make([]byte, socketLen)
	payload[0], payload[5] = unix.AF_INET, port
	return encode(unix.SOCK_DIAG_BY_FAMILY, flags, payload)
}

// numbered returns a message with an error number.
func numbered(kind, flags uint16, number int32) []byte {
	return encode(kind, flags, native.AppendUint32(nil, uint32(number)))
}

// TestReplies: what Dump makes of the replies to its two requests, for the ports 5, 6 and 7.
func TestReplies(t *testing.T) {
	q := Query{States: AllStates, Ports: []uint16{7, 6, 5}}
	done := numbered(unix.NLMSG_DONE, 0, 0)
	failed := func(number int32) []byte { return numbered(unix.NLMSG_ERROR, 0, number) }
	refused := func(errno unix.Errno) []byte { return failed(-int32(errno)) }
	five, six, seven := socketOn(5, 0), socketOn(6, 0), socketOn(7, 0)
	fiveInterrupted := socketOn(5, unix.NLM_F_DUMP_INTR)
	for name, c := range map[string]struct {
		datagrams [][]byte
		visited   []uint16
		err       error
	}{
		"in parts":               {[][]byte{slices.Concat(five, six), done, seven, done}, []uint16{5, 6, 7}, nil},
		"another port":           {[][]byte{slices.Concat(socketOn(9, 0), six, done), done}, []uint16{6}, nil},
		"messages after the end": {[][]byte{slices.Concat(done, five), done}, nil, nil},
		"no numbers":             {[][]byte{encode(unix.NLMSG_NOOP, 0, nil), encode(unix.NLMSG_DONE, 0, nil), failed(0)}, nil, nil},
		"interrupted":            {[][]byte{fiveInterrupted, six, done, seven, done}, []uint16{5, 6, 7}, ErrInterrupted},
		"interrupted at its end": {[][]byte{done, numbered(unix.NLMSG_DONE, unix.NLM_F_DUMP_INTR, 0)}, nil, ErrInterrupted},
		"no inet_diag":           {[][]byte{refused(unix.ENOENT)}, nil, unix.ENOENT},
		"no memory at the end":   {[][]byte{five, numbered(unix.NLMSG_DONE, 0, -int32(unix.ENOMEM))}, []uint16{5}, unix.ENOMEM},
		"no IPv6":                {[][]byte{five, done, refused(unix.ENOENT)}, []uint16{5}, nil},
		"no IPv6, interrupted":   {[][]byte{fiveInterrupted, done, refused(unix.EAFNOSUPPORT)}, []uint16{5}, ErrInterrupted},
		"IPv6 not allowed":       {[][]byte{done, refused(unix.EACCES)}, nil, unix.EACCES},
		"no end":                 {[][]byte{five}, []uint16{5}, unix.ETIMEDOUT},
	} {
		var visited []uint16
		err := fakeConn(t, c.datagrams...).Dump(q, func(s *tcp.Socket) { visited = append(visited, s.Local.Port()) })
		if !errors.Is(err, c.err) || !slices.Equal(visited, c.visited) {
			t.Errorf("%s: visited ports %v, %v; want %v, %v", name, visited, err, c.visited, c.err)
		}
	}
	for name, datagram := range map[string][]byte{
		"cut":                     five[:30],
		"longer than the buffer":  slices.Concat(encode(unix.NLMSG_NOOP, 0, make([]byte, 4080)), done),
		"another type":            encode(99, 0, nil),
		"a short socket":          encode(unix.SOCK_DIAG_BY_FAMILY, 0, five[headerLen:headerLen+socketLen-1]),
		"no family":               encode(unix.SOCK_DIAG_BY_FAMILY, 0, make([]byte, socketLen)),
		"an error without number": encode(unix.NLMSG_ERROR, 0, make([]byte, 3)),
		"a positive number":       failed(1),
		"no such errno":           failed(-4096),
	} {
		if err := fakeConn(t, datagram).Dump(q, func(*tcp.Socket) {}); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want %v", name, err, ErrMalformed)
		}
	}
}
