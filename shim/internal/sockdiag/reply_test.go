package sockdiag

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

const socketLen = int(unsafe.Sizeof(inetDiagMsg{}))

// fakeKernel returns a socket that receives datagrams, which slashes separate, with messages in words, and does
// not wait for others.
func fakeKernel(t *testing.T, datagrams string) (fd int) {
	const kind = unix.SOCK_SEQPACKET | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	fds := testutil.Must(unix.Socketpair(unix.AF_UNIX, kind, 0))
	t.Cleanup(func() {
		unix.Close(fds[0])
		unix.Close(fds[1])
	})
	for words := range strings.SplitSeq(datagrams, "/") {
		var datagram []byte
		for word := range strings.FieldsSeq(words) {
			datagram = append(datagram, messageOf(word)...)
		}
		testutil.Must(unix.Write(fds[1], datagram))
	}
	return fds[0]
}

// encode returns a netlink message.
func encode(kind, flags uint16, payload []byte) []byte {
	b := native.AppendUint32(nil, uint32(headerLen+len(payload)))
	b = native.AppendUint16(b, kind)
	b = native.AppendUint16(b, flags)
	return slices.Concat(b, make([]byte, 8), payload)
}

// errs are errors by name.
var errs = map[string]error{
	"ENOENT": unix.ENOENT, "EACCES": unix.EACCES, "ENOMEM": unix.ENOMEM, "EAFNOSUPPORT": unix.EAFNOSUPPORT,
	"EAGAIN": unix.EAGAIN, "interrupted": errInterrupted, "malformed": errMalformed,
}

// kinds are the kinds of messages that are not of a socket.
var kinds = map[string]uint16{
	"done": unix.NLMSG_DONE, "error": unix.NLMSG_ERROR, "empty": unix.NLMSG_ERROR,
	"noop": unix.NLMSG_NOOP, "endless": unix.NLMSG_NOOP, "other": 99,
}

// messageOf returns a message in a word. A number is of a socket with this port and an empty attribute, a
// hyphen comes before a number or error within, and an exclamation mark is the flag of an interrupted dump.
func messageOf(word string) []byte {
	word, isInterrupted := strings.CutSuffix(word, "!")
	name, value, _ := strings.Cut(word, "-")
	number, _ := strconv.Atoi(value)
	if errno, isErrno := errs[value].(unix.Errno); isErrno {
		number = -int(errno)
	}
	kind, isKind := kinds[name]
	payload := native.AppendUint32(nil, uint32(number))
	if !isKind {
		kind = unix.SOCK_DIAG_BY_FAMILY
		port, _ := strconv.Atoi(name)
		payload = make([]byte, socketLen+attrLen)
		payload[0], payload[5] = unix.AF_INET, byte(port)
		native.PutUint16(payload[socketLen:], attrLen)
	}
	switch name {
	case "length":
		return native.AppendUint32(nil, uint32(number))
	case "attribute":
		native.PutUint16(payload[socketLen:], uint16(number))
	case "unknown":
		payload[0] = 0
	case "short":
		payload = payload[:socketLen-1]
	case "empty":
		payload = payload[:3]
	case "endless":
		payload = make([]byte, 4081)
	}
	return encode(kind, map[bool]uint16{true: unix.NLM_F_DUMP_INTR}[isInterrupted], payload)
}

// TestReplies: what Dump makes of the replies to its two requests, for the ports 5, 6 and 7.
func TestReplies(t *testing.T) {
	for _, cells := range tables.Rows(`
		# datagrams with messages | the ports that are visited | the error
		5 6 / done / 7 / done          | 5 6 7 |
		9 6 done / done                | 6     |
		done 5 / done                  |       |
		noop done / error-0            |       |
		5! / 6 / done / 7 done         |       | interrupted
		done / 7 done!                 | 7     | interrupted
		5 / done / error-EAFNOSUPPORT  | 5     |
		error-ENOENT                   |       | ENOENT
		5 / done-ENOMEM                | 5     | ENOMEM
		# a kernel without IPv6
		5 / done / error-ENOENT        | 5     |
		done / error-EACCES            |       | EACCES
		5                              | 5     | EAGAIN
		5 length-0                     | 5     | malformed
		length-15 done                 |       | malformed
		length-4294967295 done         |       | malformed
		attribute-3                    |       | malformed
		attribute-5                    |       | malformed
		endless done                   |       | malformed
		other                          |       | malformed
		short                          |       | malformed
		unknown                        |       | malformed
		empty                          |       | malformed
	`) {
		var visited []string
		visit := func(s *tcp.Socket) { visited = append(visited, fmt.Sprint(s.Local.Port())) }
		err := new(Lister).dumpOn(fakeKernel(t, cells[0]), AllStates, tcp.Ports{5, 6, 7}, visit)
		if !errors.Is(err, errs[cells[2]]) || strings.Join(visited, " ") != cells[1] {
			t.Errorf("%s: visited %v, %v; want %s, %v", cells[0], visited, err, cells[1], errs[cells[2]])
		}
	}
}
