package sockdiag

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestTruncated tests recordings that are truncated: no panic, and not the whole text.
func TestTruncated(t *testing.T) {
	b := recordings(t)["dump"].bytes
	whole := format(b)
	for n := range b {
		if text := format(slices.Clone(b[:n:n])); text == whole {
			t.Errorf("the first %d bytes of %d decode to the whole text", n, len(b))
		}
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
	const ms, us, bytes = 0x01010101 * time.Millisecond, 0x01010101 * time.Microsecond, 0x0101010101010101
	for n := range long {
		var s, want tcp.Socket
		decodeInfo(long[:n:n], &s)
		want.HasInfo = n >= 136
		if want.HasInfo {
			want.Info = tcp.Info{
				LastSent: ms, LastReceived: ms, LastAcked: ms, RTT: us, PureACKs: tcp.PureACKsUnknown,
				Acked: bytes, Received: bytes, Sent: bytes,
			}
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
	// The shortest round trip stands for the latest, if the kernel sends it.
	long[148] = 2
	for n, want := range map[int]uint32{159: 0x01010101, 160: native.Uint32(long[148:])} {
		var s tcp.Socket
		decodeInfo(long[:n:n], &s)
		if s.Info.RTT != microseconds(want) {
			t.Errorf("%d bytes: RTT = %v, want %v", n, s.Info.RTT, microseconds(want))
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

// isCoarse reports whether a single span stands for too many runs.
func (p portSet) isCoarse() bool {
	spans := p.spans(nil)
	return len(spans) == 1 && int(spans[0].to-spans[0].from)+1 > len(p)
}
