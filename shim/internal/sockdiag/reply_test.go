package sockdiag

import (
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
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

// errors are the errors of testdata/replies.txt.
var errorNames = map[string]error{
	"": nil, "interrupted": ErrInterrupted, "malformed": ErrMalformed, "ENOENT": unix.ENOENT, "EACCES": unix.EACCES,
	"EPERM": unix.EPERM, "ENOMEM": unix.ENOMEM, "EAFNOSUPPORT": unix.EAFNOSUPPORT, "ETIMEDOUT": unix.ETIMEDOUT,
}

// parseMessage reads SEQ:KIND or SEQ:KIND=NUMBER, the latter with an error's name or number, or the
// length of the payload; a number is the port of a socket. An exclamation mark stands for
// NLM_F_DUMP_INTR.
func parseMessage(t *testing.T, word string) []byte {
	t.Helper()
	word, interrupted := strings.CutSuffix(word, "!")
	flags := map[bool]uint16{interrupted: unix.NLM_F_DUMP_INTR}[true]
	seq, text, _ := strings.Cut(word, ":")
	kind, value, hasValue := strings.Cut(text, "=")
	n, _ := strconv.Atoi(value)
	if errno, ok := errorNames[value].(unix.Errno); ok {
		n = -int(errno)
	}
	payload := native.AppendUint32(nil, uint32(n))
	encode := func(kind uint16, payload []byte) []byte {
		return encodeMessage(kind, flags, uint32(seq[0]-'0'), payload)
	}
	switch kind {
	case "done":
		return encode(unix.NLMSG_DONE, payload)
	case "error":
		if !hasValue {
			payload = nil
		}
		return encode(unix.NLMSG_ERROR, payload)
	case "cut":
		return encode(unix.NLMSG_ERROR, payload[:3])
	case "half":
		return encode(unix.SOCK_DIAG_BY_FAMILY, make([]byte, socketLen))[:30]
	case "noop":
		return encode(unix.NLMSG_NOOP, make([]byte, n))
	case "other":
		return encode(99, nil)
	}
	size := socketLen
	if hasValue {
		size = n
	}
	socket := make([]byte, max(size, 6))
	if port, err := strconv.Atoi(kind); err == nil {
		socket[0], socket[1], socket[5] = unix.AF_INET, byte(tcp.Established), byte(port)
	}
	return encode(unix.SOCK_DIAG_BY_FAMILY, socket[:size])
}

//go:embed testdata/replies.txt
var replies string

// TestReplies tests Dump with the replies of many kernels.
func TestReplies(t *testing.T) {
	for _, cells := range script.Rows(replies) {
		t.Run(cells[0], func(t *testing.T) {
			var datagrams [][]byte
			for text := range strings.SplitSeq(cells[1], "/") {
				var datagram []byte
				for word := range strings.FieldsSeq(text) {
					datagram = append(datagram, parseMessage(t, word)...)
				}
				if datagram != nil {
					datagrams = append(datagrams, datagram)
				}
			}
			var visited []string
			err := fakeConn(t, datagrams...).Dump(Query{States: AllStates, Ports: []uint16{7, 6, 5}}, func(s *tcp.Socket) {
				visited = append(visited, fmt.Sprint(s.Local.Port()))
			})
			if want := errorNames[cells[3]]; !errors.Is(err, want) || strings.Join(visited, " ") != cells[2] {
				t.Errorf("Dump visits ports %v, %v; want %v, %v", visited, err, cells[2], want)
			}
		})
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
	if err := unix.Sendto(other, parseMessage(t, "1:done"), 0, name); err != unix.ECONNREFUSED && err != unix.EPERM {
		t.Errorf("sending from another socket = %v, want ECONNREFUSED or EPERM", err)
	}
}
