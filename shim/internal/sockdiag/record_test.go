package sockdiag

import (
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// recording is a section of a file of recordings: what a kernel sent for sockets in many states, and
// what is decoded from it. The requests have no bytes.
type recording struct {
	bytes []byte
	text  string
}

// recordedFile returns the recordings in the processor's byte order: little-endian by Linux 6.18
// on amd64, big-endian by Linux 6.1 on s390x. The variable native does not decide, since a wrong
// byte order there must fail.
func recordedFile() string {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return "testdata/little-endian.txt"
	}
	return "testdata/big-endian.txt"
}

// recordings returns the recordings by name.
func recordings(t testing.TB) map[string]recording {
	t.Helper()
	file, err := os.ReadFile(recordedFile())
	must(t, err)
	all := map[string]recording{}
	for section := range strings.SplitSeq("\n"+string(file), "\n== ") {
		name, body, found := strings.Cut(section, "\n")
		if !found {
			continue // before the first
		}
		encoded, text, _ := strings.Cut(body, "--\n")
		b, err := hex.DecodeString(strings.ReplaceAll(encoded, "\n", ""))
		must(t, err)
		all[name] = recording{b, strings.TrimRight(text, "\n") + "\n"}
	}
	return all
}

// write writes all recordings.
func write(t *testing.T, all map[string]recording) {
	t.Helper()
	var file strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&file, "== %s\n", name)
		for line := range slices.Chunk(all[name].bytes, 48) {
			fmt.Fprintf(&file, "%x\n", line)
		}
		fmt.Fprintf(&file, "--\n%s", all[name].text)
	}
	must(t, os.WriteFile(recordedFile(), []byte(file.String()), 0o644))
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
	golden(t, "requests", text.String())
}

// golden compares got with the text of a recording.
func golden(t *testing.T, name, got string) {
	t.Helper()
	all := recordings(t)
	if *update {
		all[name] = recording{all[name].bytes, got}
		write(t, all)
	}
	if all[name].text != got {
		t.Errorf("%s:\n got %s\nwant %s", name, got, all[name].text)
	}
}

// TestRecorded tests the decoding of recorded messages.
func TestRecorded(t *testing.T) {
	for _, name := range []string{"dump", "events", "nothing-there", "refused"} {
		golden(t, name, format(recordings(t)[name].bytes))
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
