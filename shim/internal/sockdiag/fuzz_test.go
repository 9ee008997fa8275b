package sockdiag

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// seeds adds all that was recorded, message by message.
func seeds(f *testing.F, add func(b []byte, m message)) {
	files, err := filepath.Glob(recorded("*.bin"))
	must(f, err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		must(f, err)
		for len(b) > 0 {
			m, rest, err := next(b)
			if err != nil {
				break // recorded by a machine of the other byte order
			}
			add(b, m)
			b = rest
		}
	}
}

// FuzzWire: whatever bytes there are, as a datagram, as what a message says of one
// socket, and as the ports that are asked for.
func FuzzWire(f *testing.F) {
	seeds(f, func(b []byte, m message) { f.Add(b); f.Add(m.payload) })
	f.Add([]byte{0, 80})
	f.Add([]byte{0, 80, 0, 81, 1, 187})
	var many []byte
	for i := range 300 {
		many = append(many, byte(i/2), byte(i*128))
	}
	f.Add(many)
	f.Fuzz(func(t *testing.T, b []byte) {
		asAnswer(t, b)
		asSocket(t, b)
		asPorts(t, b)
	})
}

// asAnswer: a datagram is taken or an error, and what is visited has a port that
// was asked for.
func asAnswer(t *testing.T, b []byte) {
	var s tcp.Socket
	a := answer{seq: 9, ports: portSet{1, 80, 443}, sock: &s, visit: func(s *tcp.Socket) {
		if port := s.Local.Port(); port != 1 && port != 80 && port != 443 {
			t.Errorf("nobody asked: %+v", *s)
		}
	}}
	if err := a.take(b); err == nil && !a.done && len(b) > 0 && len(b) < headerLen {
		t.Errorf("% x was taken", b)
	}
	e := Events{ports: a.ports}
	e.take(b, a.visit)
}

// asSocket: what a message says of a socket is decoded or an error, twice the same.
func asSocket(t *testing.T, b []byte) {
	var one tcp.Socket
	two := tcp.Socket{State: 99, HasInfo: true, Cgroup: 99, Info: tcp.Info{Sent: 99}}
	err, again := decode(b, &one), decode(b, &two)
	switch {
	case (err == nil) != (again == nil) || one != two:
		t.Errorf("%+v, %v\n%+v, %v", one, err, two, again)
	case err == nil && (!one.Local.IsValid() || !one.Remote.IsValid()):
		t.Errorf("no addresses: %+v", one)
	case one.Local.Addr().Is4In6() || one.Remote.Addr().Is4In6():
		t.Errorf("still mapped: %+v", one)
	case one.Info != tcp.Info{} && !one.HasInfo:
		t.Errorf("untimed: %+v", one)
	}
}

// asPorts: the program for any ports ends where it says, and each of its jumps
// leads to an operation, to its end, or one beyond, as the kernel will have it.
func asPorts(t *testing.T, b []byte) {
	var ports []uint16
	for ; len(b) >= 2 && len(ports) < mostSpans+50; b = b[2:] {
		ports = append(ports, uint16(b[0])<<8|uint16(b[1]))
	}
	p := newPortSet(nil, ports)
	if len(p) == 0 {
		return
	}
	request := appendRequest(nil, 1, unix.AF_INET, Query{}, p)
	_, program, rest, err := attribute(request[headerLen+requestLen:])
	if err != nil || len(rest) > 0 {
		t.Fatalf("%v, with %d bytes behind it", err, len(rest))
	}
	coarse := p.runs() > mostSpans
	for _, port := range append(ports, 0, 1, 80, 443, 65535) {
		want := p.has(port) || coarse && port >= p[0] && port <= p[len(p)-1]
		if got := run(t, program, port); got != want {
			t.Errorf("%v: %d is kept: %v, want %v", p, port, got, want)
		}
	}
}

// run is inet_diag_bc_run.
func run(t *testing.T, program []byte, port uint16) (kept bool) {
	at := 0
	for at < len(program) {
		code, yes, no := program[at], int(program[at+1]), int(native.Uint16(program[at+2:]))
		met := false
		switch code {
		case opFrom:
			met = port >= native.Uint16(program[at+opLen+2:])
		case opTo:
			met = port <= native.Uint16(program[at+opLen+2:])
		case opJump:
		default:
			t.Fatalf("operation %d at %d of % x", code, at, program)
		}
		if met {
			at += yes
		} else {
			at += no
		}
	}
	if at > len(program)+opLen {
		t.Fatalf("jumps to %d of %d", at, len(program))
	}
	return at == len(program)
}
