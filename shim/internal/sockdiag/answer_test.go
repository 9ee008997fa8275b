package sockdiag

import (
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// played is a Conn to a kernel that says what the test has it say, datagram by
// datagram.
func played(t *testing.T, datagrams ...[]byte) *Conn {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	limit := unix.NsecToTimeval(int64(20 * time.Millisecond))
	must(t, unix.SetsockoptTimeval(fds[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit))
	for _, d := range datagrams {
		_, err := unix.Write(fds[1], d)
		must(t, err)
	}
	return &Conn{fd: fds[0], limit: patience, buf: make([]byte, 4096)}
}

// kernelSays is one message.
func kernelSays(kind, flags uint16, seq uint32, payload []byte) []byte {
	b := native.AppendUint32(nil, uint32(headerLen+len(payload)))
	b = native.AppendUint16(b, kind)
	b = native.AppendUint16(b, flags)
	b = native.AppendUint32(b, seq)
	b = native.AppendUint32(b, 0)
	return append(b, payload...)
}

func kernelFails(kind uint16, seq uint32, err unix.Errno) []byte {
	return kernelSays(kind, 0, seq, native.AppendUint32(nil, -uint32(err)))
}

// aSocket is a message about an IPv4 socket with the given port.
func aSocket(flags uint16, seq uint32, port byte) []byte {
	payload := make([]byte, socketLen)
	payload[0], payload[1], payload[5] = unix.AF_INET, byte(tcp.Established), port
	return kernelSays(unix.SOCK_DIAG_BY_FAMILY, flags, seq, payload)
}

func done(seq uint32) []byte { return kernelFails(unix.NLMSG_DONE, seq, 0) }

// TestAnswers: what Dump makes of what a kernel may say.
func TestAnswers(t *testing.T) {
	const intr = unix.NLM_F_DUMP_INTR
	join := func(b ...[]byte) []byte { return slices.Concat(b...) }
	for _, c := range []struct {
		name      string
		datagrams [][]byte
		ports     []byte // visited
		want      error
	}{
		{"nothing", [][]byte{done(1), done(2)}, nil, nil},
		{"in one", [][]byte{join(aSocket(0, 1, 5), aSocket(0, 1, 6), done(1)), done(2)}, []byte{5, 6}, nil},
		{"in parts", [][]byte{aSocket(0, 1, 5), aSocket(0, 1, 6), done(1), join(aSocket(0, 2, 7), done(2))}, []byte{5, 6, 7}, nil},
		{"a port that was not asked for", [][]byte{join(aSocket(0, 1, 9), aSocket(0, 1, 6), done(1)), done(2)}, []byte{6}, nil},
		{"the rest of an earlier one", [][]byte{join(aSocket(0, 0, 5), done(0)), kernelFails(unix.NLMSG_ERROR, 77, unix.EIO), join(aSocket(0, 1, 6), done(1)), done(2)}, []byte{6}, nil},
		{"more behind the end", [][]byte{join(done(1), aSocket(0, 1, 5)), done(2)}, nil, nil},
		{"no operation", [][]byte{kernelSays(unix.NLMSG_NOOP, 0, 1, nil), done(1), done(2)}, nil, nil},
		{"interrupted", [][]byte{join(aSocket(intr, 1, 5), aSocket(0, 1, 6), done(1)), join(aSocket(0, 2, 7), done(2))}, []byte{5, 6, 7}, ErrInterrupted},
		{"interrupted at its end", [][]byte{done(1), join(aSocket(0, 2, 7), kernelSays(unix.NLMSG_DONE, intr, 2, nil))}, []byte{7}, ErrInterrupted},
		{"no inet_diag", [][]byte{kernelFails(unix.NLMSG_ERROR, 1, unix.ENOENT)}, nil, unix.ENOENT},
		{"not allowed", [][]byte{kernelFails(unix.NLMSG_ERROR, 1, unix.EACCES)}, nil, unix.EACCES},
		{"not permitted", [][]byte{kernelFails(unix.NLMSG_ERROR, 1, unix.EPERM)}, nil, unix.EPERM},
		{"ends badly", [][]byte{join(aSocket(0, 1, 5), kernelFails(unix.NLMSG_DONE, 1, unix.ENOMEM))}, []byte{5}, unix.ENOMEM},
		{"no IPv6", [][]byte{join(aSocket(0, 1, 5), done(1)), kernelFails(unix.NLMSG_ERROR, 2, unix.ENOENT)}, []byte{5}, nil},
		{"no IPv6, interrupted", [][]byte{join(aSocket(intr, 1, 5), done(1)), kernelFails(unix.NLMSG_ERROR, 2, unix.EAFNOSUPPORT)}, []byte{5}, ErrInterrupted},
		{"IPv6 not allowed", [][]byte{done(1), kernelFails(unix.NLMSG_ERROR, 2, unix.EACCES)}, nil, unix.EACCES},
		{"silence", nil, nil, unix.ETIMEDOUT},
		{"silence after a part", [][]byte{aSocket(0, 1, 5)}, []byte{5}, unix.ETIMEDOUT},
		{"cut", [][]byte{join(aSocket(0, 1, 5), aSocket(0, 1, 6)[:30])}, []byte{5}, ErrMalformed},
		{"too long", [][]byte{join(kernelSays(unix.NLMSG_NOOP, 0, 1, make([]byte, 4096-headerLen)), aSocket(0, 1, 5)), done(1), done(2)}, nil, ErrMalformed},
		{"of another kind", [][]byte{kernelSays(99, 0, 1, nil)}, nil, ErrMalformed},
		{"a short socket", [][]byte{kernelSays(unix.SOCK_DIAG_BY_FAMILY, 0, 1, make([]byte, 71))}, nil, ErrMalformed},
		{"a socket of no family", [][]byte{kernelSays(unix.SOCK_DIAG_BY_FAMILY, 0, 1, make([]byte, 72))}, nil, ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := played(t, c.datagrams...)
			var visited []byte
			err := conn.Dump(Query{States: AllStates, Ports: []uint16{7, 6, 5}}, func(s *tcp.Socket) {
				visited = append(visited, byte(s.Local.Port()))
			})
			if !errors.Is(err, c.want) || !slices.Equal(visited, c.ports) {
				t.Errorf("got %v, %v; want %v, %v", visited, err, c.ports, c.want)
			}
		})
	}
}

// TestAfterAnError: what is left of an answer that was an error is read before
// the next question.
func TestAfterAnError(t *testing.T) {
	c := played(t, []byte("nonsense"), aSocket(0, 1, 5), make([]byte, 5000), done(1))
	visit := func(s *tcp.Socket) { t.Errorf("visited: %+v", *s) }
	if err := c.Dump(Query{}, visit); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
	if err := c.Dump(Query{}, visit); !errors.Is(err, unix.ETIMEDOUT) { // all was read, and nobody answers
		t.Error(err)
	}
}

// TestDeadline: the kernel that never comes to an end is left.
func TestDeadline(t *testing.T) {
	c := played(t, aSocket(0, 1, 5), done(1), done(2))
	c.limit = -time.Second
	if err := c.Dump(Query{}, func(*tcp.Socket) {}); !errors.Is(err, unix.ETIMEDOUT) {
		t.Error(err)
	}
	if err := c.discard(time.Now().Add(c.limit)); err != unix.ETIMEDOUT {
		t.Error(err)
	}
}

// TestOnlyTheKernel: no wait is for ever, and nobody but the kernel is heard.
func TestOnlyTheKernel(t *testing.T) {
	c := openConn(t)
	limit, err := unix.GetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO)
	if must(t, err); limit.Nano() != int64(patience) {
		t.Errorf("waits for %v", time.Duration(limit.Nano()))
	}
	name, err := unix.Getsockname(c.fd)
	must(t, err)
	other, err := socket()
	must(t, err)
	defer unix.Close(other)
	if err := unix.Sendto(other, done(1), 0, name); err != unix.ECONNREFUSED && err != unix.EPERM {
		t.Errorf("another process may send to us: %v", err)
	}
}
