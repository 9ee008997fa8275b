package sockdiag

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestTruncated tests recordings that are truncated or changed in a byte: no panic.
func TestTruncated(t *testing.T) {
	b, err := os.ReadFile(recorded("dump.bin"))
	must(t, err)
	whole := format(b)
	for n := range b {
		if text := format(slices.Clone(b[:n:n])); text == whole {
			t.Errorf("the first %d bytes of %d decode to the whole text", n, len(b))
		}
	}
	m, _, err := nextMessage(b)
	must(t, err)
	for i := range m.payload {
		for _, to := range []byte{0, 1, 3, 5, 127, 128, 255} {
			changed := slices.Clone(m.payload)
			changed[i] = to
			decodeSocket(changed, new(tcp.Socket))
		}
	}
}

// TestDecodeSocket tests the offset of each field.
func TestDecodeSocket(t *testing.T) {
	attr := func(kind uint16, value ...byte) []byte {
		b := native.AppendUint16(nil, uint16(attrLen+len(value)))
		return append(native.AppendUint16(b, kind), value...)
	}
	b := make([]byte, socketLen)
	for i := range b {
		b[i] = byte(i)
	}
	b[0], b[1] = unix.AF_INET6, byte(tcp.FinWait2)
	b = append(b, attr(99, 1)...)
	b = append(b, 0, 0, 0) // padding to four bytes
	b = append(b, attr(attrCgroup, 1, 2, 3, 4, 5, 6, 7, 8)...)
	b = append(b, attr(attrCgroup, 1, 2, 3, 4, 5, 6, 7)...) // too short: skipped
	four := func(at byte) uint32 { return native.Uint32([]byte{at, at + 1, at + 2, at + 3}) }
	want := tcp.Socket{
		State:  tcp.FinWait2,
		Local:  netip.MustParseAddrPort("[809:a0b:c0d:e0f:1011:1213:1415:1617]:1029"),
		Remote: netip.MustParseAddrPort("[1819:1a1b:1c1d:1e1f:2021:2223:2425:2627]:1543"),
		Cookie: uint64(four(48))<<32 | uint64(four(44)),
		Unread: four(56), Unsent: four(60), Inode: four(68),
		Cgroup:  native.Uint64([]byte{1, 2, 3, 4, 5, 6, 7, 8}),
		Retries: 3,
	}
	var got tcp.Socket
	if err := decodeSocket(b, &got); err != nil || got != want {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	b[0] = unix.AF_INET
	want.Local, want.Remote = netip.MustParseAddrPort("8.9.10.11:1029"), netip.MustParseAddrPort("24.25.26.27:1543")
	if err := decodeSocket(b, &got); err != nil || got != want {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

// TestLengths tests lengths of messages and attributes: too small and too large.
func TestLengths(t *testing.T) {
	b := make([]byte, 20)
	for n := range uint32(24) {
		native.PutUint32(b, n)
		if _, rest, err := nextMessage(b); errors.Is(err, ErrMalformed) == (n >= 16 && n <= 20) || err == nil && len(rest) != 20-align(int(n)) {
			t.Errorf("message length %d: %v, rest of %d bytes", n, err, len(rest))
		}
	}
	native.PutUint32(b, 1<<32-1)
	if _, _, err := nextMessage(b); !errors.Is(err, ErrMalformed) {
		t.Errorf("message length 1<<32-1: %v, want ErrMalformed", err)
	}
	for n := range uint16(12) {
		native.PutUint16(b, n)
		if _, _, rest, err := nextAttribute(b[:9]); errors.Is(err, ErrMalformed) == (n >= 4 && n <= 9) || err == nil && len(rest) != max(0, 9-align(int(n))) {
			t.Errorf("attribute length %d: %v, rest of %d bytes", n, err, len(rest))
		}
	}
}

// TestShortInfo tests the shorter struct tcp_info of older kernels.
func TestShortInfo(t *testing.T) {
	long := make([]byte, 300)
	for i := range long {
		long[i] = 1
	}
	const ms, bytes = 0x01010101 * time.Millisecond, 0x0101010101010101
	for n := range long {
		var s, want tcp.Socket
		decodeInfo(long[:n:n], &s)
		want.HasInfo = n >= 136
		if want.HasInfo {
			want.Info = tcp.Info{LastSent: ms, LastReceived: ms, LastAcked: ms, PureACKs: tcp.PureACKsUnknown, Acked: bytes, Received: bytes, Sent: bytes}
		}
		if n >= 160 {
			want.Info.Segments, want.Info.SentSegments = 0x01010101, 0x01010101
			want.Info.PureACKs = 0
			want.Info.NotSent = 0x01010101
		}
		if n >= 216 {
			want.Info.Resent = bytes
		}
		if s != want {
			t.Errorf("%d bytes:\n got %+v\nwant %+v", n, s, want)
		}
	}
	// Acked stands for Sent if the kernel does not send tcpi_bytes_sent.
	long[200] = 2
	for n, want := range map[int]uint64{207: bytes, 208: native.Uint64(long[200:])} {
		var s tcp.Socket
		decodeInfo(long[:n:n], &s)
		if s.Info.Sent != want {
			t.Errorf("%d bytes: Sent = %x, want %x", n, s.Info.Sent, want)
		}
	}
}

// TestErrno tests the payloads of NLMSG_ERROR and NLMSG_DONE.
func TestErrno(t *testing.T) {
	number := func(n int32) []byte { return native.AppendUint32(nil, uint32(n)) }
	for _, c := range []struct {
		kind    uint16
		payload []byte
		want    error
	}{
		{unix.NLMSG_DONE, nil, nil},
		{unix.NLMSG_DONE, number(0), nil},
		{unix.NLMSG_DONE, number(-int32(unix.ENOMEM)), unix.ENOMEM},
		{unix.NLMSG_ERROR, number(0), nil},
		{unix.NLMSG_ERROR, number(-int32(unix.ENOENT)), unix.ENOENT},
		{unix.NLMSG_ERROR, append(number(-int32(unix.EACCES)), "more"...), unix.EACCES},
		{unix.NLMSG_ERROR, nil, ErrMalformed},
		{unix.NLMSG_ERROR, []byte{1, 2, 3}, ErrMalformed},
		{unix.NLMSG_ERROR, number(1), ErrMalformed},
		{unix.NLMSG_ERROR, number(-5000), ErrMalformed},
		{unix.NLMSG_ERROR, number(-1 << 31), ErrMalformed},
	} {
		if err := (message{kind: c.kind, payload: c.payload}).errno(); !errors.Is(err, c.want) {
			t.Errorf("type %d, payload % x: %v, want %v", c.kind, c.payload, err, c.want)
		}
	}
}

// TestSpans tests spans: one for each run of consecutive ports, or a single span with
// more than maxSpans runs.
func TestSpans(t *testing.T) {
	for ports, want := range map[string]string{
		"[]":                   "",
		"[80]":                 "80-80 ",
		"[80 81 83 84 85]":     "80-81 83-85 ",
		"[0 65535]":            "0-0 65535-65535 ",
		"[0 1 2 65534 65535]":  "0-2 65534-65535 ",
		"[85 80 84 80 81 83 ]": "80-81 83-85 ",
	} {
		var list []uint16
		for _, field := range strings.Fields(strings.Trim(ports, "[]")) {
			var port uint16
			fmt.Sscan(field, &port)
			list = append(list, port)
		}
		if got := spansOf(newPortSet(nil, list)); got != want {
			t.Errorf("spans of %s: %s, want %s", ports, got, want)
		}
	}
	var even []uint16
	for port := uint16(2); len(even) < maxSpans; port += 2 {
		even = append(even, port)
	}
	if n := len(portSet(even).spans(nil)); n != maxSpans {
		t.Errorf("%d spans, want %d", n, maxSpans)
	}
	if got, want := spansOf(append(even, 60000)), "2-60000 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func spansOf(p portSet) (text string) {
	for _, span := range p.spans(nil) {
		text += fmt.Sprintf("%d-%d ", span.from, span.to)
	}
	return text
}

// isCoarse reports whether a single span stands for too many runs.
func (p portSet) isCoarse() bool {
	spans := p.spans(nil)
	return len(spans) == 1 && int(spans[0].to-spans[0].from)+1 > len(p)
}
