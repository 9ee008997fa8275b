package procfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// recordings are what kernels showed of known sockets, by the byte order of the processor (true is
// little-endian): of a Linux 6.18 on amd64, and of a Linux 6.1 on s390x.
var recordings = map[bool]string{true: "testdata/linux.txt", false: "testdata/big-endian.txt"}

// unpack writes the sections of a file into a directory, each into the file that it names.
func unpack(t testing.TB, path string) Root {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for section := range strings.SplitSeq("\n"+string(text), "\n== ") {
		name, body, found := strings.Cut(section, "\n")
		if found {
			os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700)
			write(t, dir, name, strings.TrimSuffix(body, "\n")+"\n")
		}
	}
	return Root(dir)
}

// decode returns what a recording shows, a line each.
func (r Root) decode() string {
	var text strings.Builder
	add := func(what string, err error) {
		if err == nil {
			fmt.Fprintln(&text, what)
		}
	}
	sockets, err := r.TCP([]tcp.Socket{{Inode: 1}}) // what is there before stays
	for _, s := range sockets {
		add(fmt.Sprintf("TCP, state %d: %v from %v, unread %d, inode %d", s.State, s.Local, s.Remote, s.Unread, s.Inode), err)
	}
	packets, err := r.UDP()
	for _, s := range packets {
		add(fmt.Sprintf("UDP %v, inode %d", s.Local, s.Inode), err)
	}
	local, err := r.Unix()
	for _, s := range local {
		add(fmt.Sprintf("Unix %q, inode %d", s.Path, s.Inode), err)
	}
	counters, err := r.Counters()
	add(fmt.Sprintf("%+v", counters), err)
	ports, err := r.LocalPorts()
	add(fmt.Sprintf("ports %v", ports), err)
	return text.String()
}

func TestRecorded(t *testing.T) { wantDecoded(t, recordings[littleEndian()]) }

// TestRecordedGVisor: a gVisor sandbox (runsc, September 2026) with two listeners and two connections,
// both with five unread bytes; the program has accepted the first alone. Listeners and accepted
// connections are there with their inodes. The queues are always 0, and a connection in the accept
// queue is only in the counters.
func TestRecordedGVisor(t *testing.T) {
	if !littleEndian() {
		t.Skip("recorded on a little-endian machine")
	}
	wantDecoded(t, "testdata/gvisor.txt")
}

// wantDecoded compares a recording with its section "decoded".
func wantDecoded(t *testing.T, path string) {
	t.Helper()
	root := unpack(t, path)
	want, err := os.ReadFile(filepath.Join(string(root), "decoded"))
	if got := root.decode(); err != nil || got != string(want) {
		t.Errorf("%v\n got\n%s\nwant\n%s", err, got, want)
	}
}

func TestPortRange(t *testing.T) {
	r := PortRange{10, 12}
	for port, want := range map[uint16]bool{0: false, 9: false, 10: true, 12: true, 13: false} {
		if r.Has(port) != want {
			t.Errorf("%d: %v", port, !want)
		}
	}
	if (PortRange{}).Has(0) {
		t.Error("no range has a port")
	}
}
