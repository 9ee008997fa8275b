package sockdiag

import (
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

var (
	update = flag.Bool("update", false, "rewrite the golden files")
	record = flag.Bool("record", false, "record replies of this kernel, and rewrite the golden files")
)

// recorded returns the path of a recording in the processor's byte order: little-endian
// by Linux 6.18 on amd64, big-endian by Linux 6.1 on s390x. The variable native does not
// decide, since a wrong byte order there must fail.
func recorded(name string) string {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return "testdata/little-endian/" + name
	}
	return "testdata/big-endian/" + name
}

// golden compares got with a golden file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update || *record {
		must(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if string(want) != got {
		t.Errorf("%s:\n got %s\nwant %s", file, got, want)
	}
}

// TestRequest tests the bytes of requests.
func TestRequest(t *testing.T) {
	var text strings.Builder
	for _, c := range []struct {
		name   string
		family uint8
		q      Query
	}{
		{"listeners, IPv4", unix.AF_INET, Query{States: In(tcp.Listen)}},
		{"everything, IPv6", unix.AF_INET6, Query{States: AllStates, Info: true}},
		{"one port", unix.AF_INET, Query{States: In(tcp.Established), Ports: []uint16{8080}}},
		{"a run of ports, and another port", unix.AF_INET, Query{States: In(tcp.Established), Ports: []uint16{443, 82, 80, 81, 80}, Info: true}},
	} {
		b := appendRequest([]byte("before"), c.family, c.q, newPortSet(nil, c.q.Ports))
		fmt.Fprintf(&text, "%s:\n%s", c.name, hex.Dump(b[len("before"):]))
	}
	golden(t, recorded("requests.txt"), text.String())
}

// TestRecorded tests the decoding of recorded messages.
func TestRecorded(t *testing.T) {
	if *record {
		recordAll(t)
	}
	for _, name := range []string{"dump", "events", "nothing-there", "refused"} {
		b, err := os.ReadFile(recorded(name + ".bin"))
		must(t, err)
		golden(t, recorded(name+".txt"), format(b))
	}
}

// format decodes messages, a line each.
func format(b []byte) string {
	var text strings.Builder
	for len(b) > 0 {
		m, rest, err := nextMessage(b)
		if err != nil {
			return text.String() + err.Error() + "\n"
		}
		var s tcp.Socket
		switch m.kind {
		case unix.SOCK_DIAG_BY_FAMILY:
			err := decodeSocket(m.payload, &s)
			fmt.Fprintf(&text, "%+v %v\n", s, err)
		default:
			fmt.Fprintf(&text, "kind %d: %v\n", m.kind, m.errno())
		}
		b = rest
	}
	return text.String()
}

// recordAll records the replies of this machine's kernel.
func recordAll(t *testing.T) {
	w := newWorld(t)
	e := openEvents(t, w.ports)
	must(t, os.WriteFile(recorded("dump.bin"), rawReply(t, Query{States: AllStates, Ports: w.ports, Info: true}), 0o644))
	must(t, os.WriteFile(recorded("nothing-there.bin"), rawReply(t, Query{States: AllStates, Ports: []uint16{1}}), 0o644))

	c := openConn(t)
	bad := appendRequest(nil, unix.AF_INET, Query{Ports: []uint16{1}}, portSet{1})
	bad[len(bad)-1-3*bcOpLen] = 9 // an invalid jump
	_, err := unix.Write(c.fd, bad)
	must(t, err)
	n, err := receive(c.fd, c.buf, 0)
	must(t, err)
	must(t, os.WriteFile(recorded("refused.bin"), c.buf[:n], 0o644))

	for _, name := range []string{"asking server", "asking client", "listener 6"} {
		w.sockets[name].(io.Closer).Close()
	}
	var events []byte
	for range 3 { // and the event of the connection in the accept queue
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(e.FD()), Events: unix.POLLIN}}, 10_000)
		must(t, err)
		n, err := receive(e.FD(), e.buf, unix.MSG_DONTWAIT)
		must(t, err)
		events = append(events, e.buf[:n]...)
	}
	must(t, os.WriteFile(recorded("events.bin"), events, 0o644))
}

// rawReply returns all bytes of a dump of both families.
func rawReply(t *testing.T, q Query) (all []byte) {
	c := openConn(t)
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		_, err := unix.Write(c.fd, appendRequest(nil, family, q, newPortSet(nil, q.Ports)))
		must(t, err)
		for r := (reply{sock: &c.sock, visit: func(*tcp.Socket) {}}); !r.done; {
			n, err := receive(c.fd, c.buf, 0)
			must(t, err)
			must(t, r.parse(c.buf[:n]))
			all = append(all, c.buf[:n]...)
		}
	}
	return all
}
