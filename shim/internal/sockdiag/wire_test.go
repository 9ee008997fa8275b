package sockdiag

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// recorded returns messages of a kernel, in the processor's byte order, and what is decoded from
// them: of Linux 6.18 on amd64, and of Linux 6.1 on s390x, for a connection with data in its
// queues, a listener, connections with and without the peer's FIN, the end of a dump, the event of
// a reset, and a refused request. The variable native does not decide, since a wrong byte order
// there must fail.
func recorded() (messages []byte, decoded string) {
	path := "testdata/big-endian.txt"
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		path = "testdata/little-endian.txt"
	}
	text := string(testutil.Must(os.ReadFile(path)))
	digits, decoded, _ := strings.Cut(text, "--\n")
	return testutil.Must(hex.DecodeString(strings.ReplaceAll(digits, "\n", ""))), decoded
}

// decode returns what is decoded from messages, a line each.
func decode(messages []byte) string {
	var text strings.Builder
	var s tcp.Socket // reused, as by Dump
	err := eachMessage(messages, func(m message) error {
		if m.kind != unix.SOCK_DIAG_BY_FAMILY {
			fmt.Fprintf(&text, "kind %d: %v\n", m.kind, m.errno())
			return nil
		}
		err := decodeSocket(m.payload, &s)
		fmt.Fprintf(&text, "%+v %v\n", s, err)
		return nil
	})
	if err != nil {
		fmt.Fprintln(&text, err)
	}
	return text.String()
}

// TestRecorded decodes recorded messages, whole and cut anywhere.
func TestRecorded(t *testing.T) {
	messages, want := recorded()
	for n := range messages {
		if decode(messages[:n:n]) == want {
			t.Errorf("the first %d of %d bytes decode to the whole text", n, len(messages))
		}
	}
	if got := decode(messages); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// FuzzWire parses bytes as a datagram, and as the payload of a socket's message: only sockets with
// the ports of the query are visited.
func FuzzWire(f *testing.F) {
	messages, _ := recorded()
	f.Add(messages)
	eachMessage(messages, func(m message) error { f.Add(m.payload); return nil })
	f.Fuzz(func(t *testing.T, b []byte) {
		var s tcp.Socket
		r := reply{ports: tcp.Ports{1, 80, 443}, sock: &s}
		r.visit = func(s *tcp.Socket) {
			if !r.ports.Has(s.Local.Port()) {
				t.Errorf("visited with another port: %+v", *s)
			}
		}
		r.parse(b)
		err := decodeSocket(b, &s)
		if err == nil && !s.Remote.IsValid() || s.Local.Addr().Is4In6() || s.Remote.Addr().Is4In6() {
			t.Errorf("invalid or IPv4-mapped: %+v", s)
		}
	})
}

// TestOldKernels: older kernels send a shorter struct tcp_info.
func TestOldKernels(t *testing.T) {
	long := bytes.Repeat([]byte{1}, 300)
	long[148], long[200] = 2, 2 // the shortest round trip, and bytes sent
	const ones, manyOnes = 0x01010101, 0x0101010101010101
	var want tcp.Socket
	for n := range long {
		switch n {
		case 136: // 4.1
			want.HasInfo = true
			want.Info = tcp.Info{
				LastSent: ones * time.Millisecond, LastReceived: ones * time.Millisecond, LastAcked: ones * time.Millisecond,
				RTT: ones * time.Microsecond, PureACKs: tcp.PureACKsUnknown,
				Acked: manyOnes, Received: manyOnes, Sent: manyOnes,
			}
		case 160: // 4.6
			want.Info.NotSent, want.Info.Segments, want.Info.SentSegments, want.Info.PureACKs = ones, ones, ones, 0
			want.Info.RTT = time.Duration(native.Uint32(long[148:])) * time.Microsecond
		case 208: // 4.19
			want.Info.Sent = native.Uint64(long[200:])
		case 216:
			want.Info.Resent = manyOnes
		}
		var got tcp.Socket
		var info unix.TCPInfo
		if setInfo(&info, copy(bytesOf(&info), long[:n]), &got); got != want {
			t.Errorf("%d bytes:\n got %+v\nwant %+v", n, got, want)
		}
	}
}
