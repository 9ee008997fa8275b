package sockdiag

import (
	"testing"

	"golang.org/x/sys/unix"

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

// FuzzWire parses bytes as a datagram, as the payload of a socket's message, and as
// ports of a query.
func FuzzWire(f *testing.F) {
	addSeeds(f, func(b []byte, m message) { f.Add(b); f.Add(m.payload) })
	f.Add([]byte{0, 80})
	f.Add([]byte{0, 80, 0, 81, 1, 187})
	var many []byte
	for i := range 300 {
		many = append(many, byte(i/2), byte(i*128))
	}
	f.Add(many)
	f.Fuzz(func(t *testing.T, b []byte) {
		checkReply(t, b)
		checkSocket(t, b)
		checkBytecode(t, b)
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

// checkBytecode runs the bytecode for the ports in b as the kernel does.
func checkBytecode(t *testing.T, b []byte) {
	var ports []uint16
	for ; len(b) >= 2 && len(ports) < maxSpans+50; b = b[2:] {
		ports = append(ports, uint16(b[0])<<8|uint16(b[1]))
	}
	p := newPortSet(nil, ports)
	if len(p) == 0 {
		return
	}
	request := appendRequest(nil, unix.AF_INET, Query{}, p)
	_, program, rest, err := nextAttribute(request[headerLen+requestLen:])
	if err != nil || len(rest) > 0 {
		t.Fatalf("bytecode attribute: %v, %d bytes after the attribute", err, len(rest))
	}
	coarse := p.isCoarse()
	for _, port := range append(ports, 0, 1, 80, 443, 65535) {
		want := p.contains(port) || coarse && port >= p[0] && port <= p[len(p)-1]
		if got := runBytecode(t, program, port); got != want {
			t.Errorf("ports %v: port %d accepted: %v, want %v", p, port, got, want)
		}
	}
}

// runBytecode is inet_diag_bc_run of net/ipv4/inet_diag.c.
func runBytecode(t *testing.T, program []byte, port uint16) (accepted bool) {
	at := 0
	for at < len(program) {
		code := program[at]
		yes, no := int(program[at+1]), int(native.Uint16(program[at+2:]))
		met := false
		switch code {
		case bcSrcGE:
			met = port >= native.Uint16(program[at+bcOpLen+2:])
		case bcSrcLE:
			met = port <= native.Uint16(program[at+bcOpLen+2:])
		case bcJump:
		default:
			t.Fatalf("operation %d at %d of % x", code, at, program)
		}
		if met {
			at += yes
		} else {
			at += no
		}
	}
	if at > len(program)+bcOpLen {
		t.Fatalf("jump to %d in a program of %d bytes", at, len(program))
	}
	return at == len(program)
}
