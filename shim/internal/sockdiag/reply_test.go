package sockdiag

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

const socketLen = int(unsafe.Sizeof(inetDiagMsg{}))

// fakeConn returns a Conn that receives the given datagrams, and does not wait for others.
func fakeConn(t *testing.T, datagrams [][]byte) *Conn {
	const kind = unix.SOCK_SEQPACKET | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	fds := testutil.Must(unix.Socketpair(unix.AF_UNIX, kind, 0))
	c := &Conn{fd: fds[0], buf: make([]byte, 4096)}
	t.Cleanup(func() {
		c.Close()
		unix.Close(fds[1])
	})
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

// socketOn returns the message of a socket with a local port and an empty attribute.
func socketOn(port byte, flags uint16) []byte {
	payload := make([]byte, socketLen+attrLen)
	payload[0], payload[5] = unix.AF_INET, port
	native.PutUint16(payload[socketLen:], attrLen)
	return encode(unix.SOCK_DIAG_BY_FAMILY, flags, payload)
}

// numbered returns a message with an error number.
func numbered(kind, flags uint16, number int32) []byte {
	return encode(kind, flags, native.AppendUint32(nil, uint32(number)))
}

// TestReplies: what Dump makes of the replies to its two requests, for the ports 5, 6 and 7. A number
// is the message of a socket with this port, and an exclamation mark the flag of an interrupted dump.
func TestReplies(t *testing.T) {
	failed := func(number int32) []byte { return numbered(unix.NLMSG_ERROR, 0, number) }
	attribute := func(length uint16) []byte {
		message := socketOn(5, 0)
		native.PutUint16(message[headerLen+socketLen:], length)
		return message
	}
	cut := func(length uint32) []byte { return native.AppendUint32(nil, length) }
	noFamily := make([]byte, socketLen)
	messages := map[string][]byte{
		"5": socketOn(5, 0), "6": socketOn(6, 0), "7": socketOn(7, 0), "9": socketOn(9, 0),
		"5!":          socketOn(5, unix.NLM_F_DUMP_INTR),
		"done":        numbered(unix.NLMSG_DONE, 0, 0),
		"done!":       numbered(unix.NLMSG_DONE, unix.NLM_F_DUMP_INTR, 0),
		"done-ENOMEM": numbered(unix.NLMSG_DONE, 0, -int32(unix.ENOMEM)),
		"noop":        encode(unix.NLMSG_NOOP, 0, nil),
		"no-error":    failed(0),
		"ENOENT":      failed(-int32(unix.ENOENT)),
		"EACCES":      failed(-int32(unix.EACCES)),
		"EAFNO":       failed(-int32(unix.EAFNOSUPPORT)),
		"error-empty": encode(unix.NLMSG_ERROR, 0, make([]byte, 3)),
		"other":       encode(99, 0, nil),
		"no-family":   encode(unix.SOCK_DIAG_BY_FAMILY, 0, noFamily),
		"short":       encode(unix.SOCK_DIAG_BY_FAMILY, 0, socketOn(5, 0)[headerLen:headerLen+socketLen-1]),
		"length-0":    cut(0), "length-15": cut(15), "length-4G": cut(1<<32 - 1),
		"attribute-3": attribute(3), "attribute-5": attribute(5),
		"endless": encode(unix.NLMSG_NOOP, 0, make([]byte, 4081)),
	}
	errs := map[string]error{
		"": nil, "ENOENT": unix.ENOENT, "EACCES": unix.EACCES, "ENOMEM": unix.ENOMEM, "ETIMEDOUT": unix.ETIMEDOUT,
		"interrupted": ErrInterrupted, "malformed": ErrMalformed,
	}
	for _, cells := range tables.Rows(`
		# datagrams with messages | the ports that are visited | the error
		5 6 / done / 7 / done              | 5 6 7 |
		9 6 done / done                    | 6     |
		done 5 / done                      |       |
		noop done / no-error               |       |
		5! / 6 / done / 7 done             | 5 6 7 | interrupted
		done / 7 done!                     | 7     | interrupted
		5! / done / EAFNO                  | 5     | interrupted
		ENOENT                             |       | ENOENT
		5 / done-ENOMEM                    | 5     | ENOMEM
		# a kernel without IPv6
		5 / done / ENOENT                  | 5     |
		done / EACCES                      |       | EACCES
		5                                  | 5     | ETIMEDOUT
		5 length-0                         | 5     | malformed
		length-15 done                     |       | malformed
		length-4G done                     |       | malformed
		attribute-3                        |       | malformed
		attribute-5                        |       | malformed
		endless done                       |       | malformed
		other                              |       | malformed
		short                              |       | malformed
		no-family                          |       | malformed
		error-empty                        |       | malformed
	`) {
		var datagrams [][]byte
		for words := range strings.SplitSeq(cells[0], "/") {
			var datagram []byte
			for word := range strings.FieldsSeq(words) {
				datagram = append(datagram, messages[word]...)
			}
			datagrams = append(datagrams, datagram)
		}
		var visited []string
		q := Query{States: AllStates, Ports: tcp.Ports{5, 6, 7}}
		err := fakeConn(t, datagrams).Dump(q, func(s *tcp.Socket) { visited = append(visited, fmt.Sprint(s.Local.Port())) })
		if !errors.Is(err, errs[cells[2]]) || strings.Join(visited, " ") != cells[1] {
			t.Errorf("%s: visited %v, %v; want %s, %v", cells[0], visited, err, cells[1], errs[cells[2]])
		}
	}
}

// TestRequest: the bytes of a request, without ports and with a run of ports.
func TestRequest(t *testing.T) {
	payload := make([]byte, unsafe.Sizeof(inetDiagReq{})-headerLen)
	payload[0], payload[1], payload[2] = unix.AF_INET6, unix.IPPROTO_TCP, 2
	native.PutUint32(payload[4:], 0x1ffe) // all states but 0
	q := Query{States: AllStates, Info: true}
	check := func(ports tcp.Ports) {
		q.Ports = ports
		want := encode(unix.SOCK_DIAG_BY_FAMILY, unix.NLM_F_REQUEST|unix.NLM_F_DUMP, payload)
		if got := newRequest(nil, unix.AF_INET6, q); !bytes.Equal(got, want) {
			t.Errorf("ports %v: % x\nwant % x", ports, got, want)
		}
	}
	check(nil)
	payload = native.AppendUint16(payload, 20)
	payload = native.AppendUint16(payload, 1)
	for _, operation := range [][3]uint16{{2, 8, 20}, {0, 0, 80}, {3, 8, 12}, {0, 0, 82}} {
		payload = native.AppendUint16(append(payload, byte(operation[0]), byte(operation[1])), operation[2])
	}
	check(tcp.Ports{80, 81, 82})
}
