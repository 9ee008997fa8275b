package traffic

import (
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestKeepsInFlight tests the sizes of PINGs of grpc-go and net/http, and of small responses.
func TestKeepsInFlight(t *testing.T) {
	for _, c := range []struct {
		name           string
		received, sent uint64
		whole, half    bool
	}{
		{"no byte", 0, 0, true, false},
		{"PING over cleartext", 17, 17, true, false},
		{"PING over TLS 1.3", 39, 39, true, false},
		{"PING over TLS 1.2", 46, 46, true, false},
		{"three PINGs between two samples", 51, 51, true, false},
		{"largest", maxControlBytes, maxControlBytes, true, false},
		{"too large", maxControlBytes + 1, maxControlBytes + 1, false, false},
		{"PING without its ACK", 17, 0, false, true},
		{"a part of the request", maxControlBytes + 1, 0, false, false},
		{"small response", 0, 17, false, false},
		{"response, then a smaller request", 14, 57, false, false},
	} {
		for _, request := range []RequestState{Idle, InFlight, Undetermined} {
			j := judgment{request: request}
			whole := c.whole && (request == InFlight || request == Undetermined && c.sent > 0)
			if got := j.keepsState(c.received, c.sent); got != whole {
				t.Errorf("%s: stays %v is %v, want %v", c.name, request, got, whole)
			}
			if got := j.halfPING(c.received, c.sent); got != (c.half && request == InFlight) {
				t.Errorf("%s, %v: awaits an ACK is %v", c.name, request, got)
			}
		}
	}
}

// TestPartlyRead: a request is being served once the program has read a part of it.
func TestPartlyRead(t *testing.T) {
	for name, c := range map[string]struct {
		judgment
		received uint64
		unread   uint32
		want     bool
	}{
		"a first request, untouched":            {judgment{}, 100, 100, false},
		"a first request, its head read":        {judgment{}, 100_000, 96_000, true},
		"a kept connection, unread at TERM":     {judgment{}, 500, 100, true}, // or a part: not known
		"an idle connection, then a request":    {judgment{made: true, received: 400}, 500, 100, false},
		"an idle connection, the head read":     {judgment{made: true, received: 400}, 100_500, 96_000, true},
		"a request read, and another behind it": {judgment{made: true, request: InFlight, received: 400}, 500, 100, true},
	} {
		course := course{judgment: c.judgment}
		sock := tcp.Socket{HasInfo: true, Unread: c.unread, Info: tcp.Info{Received: c.received}}
		if got := course.partlyRead(&sock); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
