package traffic

import (
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestKeepsIdle tests the sizes of PINGs of grpc-go and net/http, and of small requests.
func TestKeepsIdle(t *testing.T) {
	const requestLast, sameJiffy, responseLast = 40 * time.Millisecond, 0, -40 * time.Millisecond
	for _, c := range []struct {
		name           string
		order          time.Duration // how long after the last byte sent the last byte was received
		received, sent uint64
		want           bool
	}{
		{"PING over cleartext", requestLast, 17, 17, true},
		{"PING over TLS 1.3", requestLast, 39, 39, true},
		{"PING over TLS 1.2", requestLast, 46, 46, true},
		{"three PINGs between two samples", requestLast, 51, 51, true},
		{"no byte since the PING", requestLast, 0, 0, true},
		{"largest", requestLast, maxControlBytes, maxControlBytes, true},
		{"too large", requestLast, maxControlBytes + 1, maxControlBytes + 1, false},
		{"PING in one jiffy", sameJiffy, 17, 17, false},
		{"PING of the client", responseLast, 17, 17, false},
		{"small request", requestLast, 17, 0, false},
		{"response, then a smaller request", requestLast, 14, 57, false},
		{"request after a PING", requestLast, 17 + 82, 17, false},
		{"WebSocket ping and masked pong", requestLast, 6, 2, false},
	} {
		info := tcp.Info{LastReceived: time.Second, LastSent: time.Second + c.order}
		idle := judgment{request: Idle}
		if got := idle.keepsState(&info, c.received, c.sent); got != c.want {
			t.Errorf("%s: %d bytes received, %d sent: stays idle is %v, want %v", c.name, c.received, c.sent, got, c.want)
		}
	}
}

// TestHalfPING: only a few bytes sent on an idle connection may be a PING.
func TestHalfPING(t *testing.T) {
	for _, c := range []struct {
		received, sent uint64
		want           bool
	}{
		{0, 0, false},
		{0, 17, true},
		{0, maxControlBytes, true},
		{0, maxControlBytes + 1, false},
		{17, 17, false},
		{17, 0, false},
	} {
		if got := halfPING(Idle, Idle, c.received, c.sent); got != c.want {
			t.Errorf("%d bytes received, %d sent: awaits an ACK is %v, want %v", c.received, c.sent, got, c.want)
		}
	}
}
