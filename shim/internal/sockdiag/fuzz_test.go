package sockdiag

import (
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// addSeeds adds all recorded messages.
func addSeeds(f *testing.F, add func(b []byte, m message)) {
	for _, r := range recordings(f) {
		for b := r.bytes; len(b) > 0; {
			m, rest, err := nextMessage(b)
			if err != nil {
				break
			}
			add(b, m)
			b = rest
		}
	}
}

// FuzzWire parses bytes as a datagram, and as the payload of a socket's message.
func FuzzWire(f *testing.F) {
	addSeeds(f, func(b []byte, m message) { f.Add(b); f.Add(m.payload) })
	f.Fuzz(func(t *testing.T, b []byte) {
		checkReply(t, b)
		checkSocket(t, b)
	})
}

// checkReply parses b as a datagram: an error, or sockets with the ports of the query.
func checkReply(t *testing.T, b []byte) {
	var s tcp.Socket
	r := reply{ports: portSet{1, 80, 443}, sock: &s, visit: func(s *tcp.Socket) {
		if port := s.Local.Port(); port != 1 && port != 80 && port != 443 {
			t.Errorf("visited with another port: %+v", *s)
		}
	}}
	if err := r.parse(b); err == nil && !r.done && len(b) > 0 && len(b) < headerLen {
		t.Errorf("no error for % x", b)
	}
	e := Events{ports: r.ports}
	e.parse(b, r.visit)
}

// checkSocket decodes b twice, with the same result, whatever the socket had before.
func checkSocket(t *testing.T, b []byte) {
	var one tcp.Socket
	two := tcp.Socket{State: 99, HasInfo: true, Cgroup: 99, Info: tcp.Info{Sent: 99}}
	err := decodeSocket(b, &one)
	again := decodeSocket(b, &two)
	switch {
	case (err == nil) != (again == nil) || one != two:
		t.Errorf("%+v, %v\n%+v, %v", one, err, two, again)
	case err == nil && (!one.Local.IsValid() || !one.Remote.IsValid()):
		t.Errorf("invalid addresses: %+v", one)
	case one.Local.Addr().Is4In6() || one.Remote.Addr().Is4In6():
		t.Errorf("IPv4-mapped addresses: %+v", one)
	case one.Info != tcp.Info{} && !one.HasInfo:
		t.Errorf("Info without HasInfo: %+v", one)
	}
}
