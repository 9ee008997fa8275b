package sockdiag

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/internal/tables"
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
	for len(messages) > 0 {
		r := reply{sock: &s, visit: func(s *tcp.Socket) { fmt.Fprintf(&text, "%+v <nil>\n", *s) }}
		length := len(messages)
		if length >= headerLen {
			length = min(length, int(native.Uint32(messages)))
		}
		err := r.parse(messages[:length])
		switch {
		case r.done:
			fmt.Fprintf(&text, "kind %d: %v\n", native.Uint16(messages[4:]), err)
		case err != nil:
			fmt.Fprintln(&text, err)
		}
		messages = messages[length:]
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
	f.Add(messages[headerLen:])
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
	copy(long[148:], "2222")     // the shortest round trip
	copy(long[200:], "22222222") // bytes sent
	var before tcp.Socket
	var found [][]string
	for n := range long {
		var s tcp.Socket
		var info unix.TCPInfo
		setInfo(&info, copy(bytesOf(&info), long[:n]), &s)
		if more := tables.Differing(before.Info, s.Info); len(more) > 0 || s.HasInfo != before.HasInfo {
			found = append(found, []string{strconv.Itoa(n), fmt.Sprint(s.HasInfo), strings.Join(more, " ")})
		}
		before = s
	}
	want := tables.Rows(`
		# from this length on, which 4.6 and 4.19 send | whether anything is known | what more
		160 | true | LastSent=4h40m43.009s LastReceived=4h40m43.009s LastAcked=4h40m43.009s Received=72340172838076673
    Segments=16843009 SentSegments=16843009 Acked=72340172838076673 Sent=72340172838076673 RTT=14m2.15045s NotSent=16843009
		216 | true | Sent=3617008641903833650 Resent=72340172838076673
	`)
	if !reflect.DeepEqual(found, want) {
		t.Errorf("got %q\nwant %q", found, want)
	}
}
