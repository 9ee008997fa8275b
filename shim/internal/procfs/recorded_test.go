package procfs

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// recorded are files of a Linux 6.18 in a network namespace with known sockets.
const recorded Root = "testdata/proc"

// recording is the output of a kernel of one byte order for known sockets.
type recording struct {
	root Root
	tcp  []tcp.Socket
	udp  []UDP
}

func at(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// recordings are by the byte order of the processor: true is little-endian.
var recordings = map[bool]recording{
	true: {recorded, []tcp.Socket{
		{State: tcp.Listen, Local: at("127.0.0.1:8080"), Remote: at("0.0.0.0:0"), Unread: 1, Inode: 13686506},
		{State: tcp.Established, Local: at("127.0.0.1:37598"), Remote: at("127.0.0.1:9090"), Unread: 13, Inode: 13686513},
		{State: tcp.TimeWait, Local: at("127.0.0.1:37610"), Remote: at("127.0.0.1:9090")},
		{State: tcp.Established, Local: at("127.0.0.1:55762"), Remote: at("127.0.0.1:8080"), Inode: 13686510},
		{State: tcp.Established, Local: at("127.0.0.1:8080"), Remote: at("127.0.0.1:55762"), Unread: 5},
		{State: tcp.Listen, Local: at("[::]:9090"), Remote: at("[::]:0"), Unread: 1, Inode: 13686511},
		{State: tcp.Established, Local: at("127.0.0.1:9090"), Remote: at("127.0.0.1:37598"), Inode: 13686514},
		{State: tcp.Established, Local: at("[::1]:47498"), Remote: at("[::1]:9090"), Inode: 13686517},
		{State: tcp.Established, Local: at("[::1]:9090"), Remote: at("[::1]:47498")},
	}, []UDP{
		{Local: at("0.0.0.0:5353"), Inode: 13686518},
		{Local: at("127.0.0.1:45130"), Inode: 13686520},
		{Local: at("[::1]:8443"), Inode: 13686519},
	}},
	false: {"testdata/big-endian", []tcp.Socket{ // Linux 6.1 on s390x
		{State: tcp.Listen, Local: at("127.0.0.1:8080"), Remote: at("0.0.0.0:0"), Unread: 1, Inode: 8850},
		{State: tcp.Established, Local: at("127.0.0.1:37598"), Remote: at("127.0.0.1:9090"), Unread: 13, Inode: 8858},
		{State: tcp.Established, Local: at("127.0.0.1:8080"), Remote: at("127.0.0.1:55762"), Unread: 5},
		{State: tcp.Established, Local: at("127.0.0.1:55762"), Remote: at("127.0.0.1:8080"), Inode: 8853},
		{State: tcp.TimeWait, Local: at("127.0.0.1:37610"), Remote: at("127.0.0.1:9090")},
		{State: tcp.Listen, Local: at("[::]:9090"), Remote: at("[::]:0"), Unread: 1, Inode: 8857},
		{State: tcp.Established, Local: at("127.0.0.1:9090"), Remote: at("127.0.0.1:37598"), Inode: 8859},
		{State: tcp.Established, Local: at("[::1]:9090"), Remote: at("[::1]:47498")},
		{State: tcp.Established, Local: at("[::1]:47498"), Remote: at("[::1]:9090"), Inode: 8862},
	}, []UDP{
		{Local: at("127.0.0.1:45130"), Inode: 8865},
		{Local: at("0.0.0.0:5353"), Inode: 8863},
		{Local: at("[::1]:8443"), Inode: 8864},
	}},
}

func TestRecordedTCP(t *testing.T) {
	r := recordings[littleEndian()]
	before := tcp.Socket{Inode: 1}
	got, err := r.root.TCP([]tcp.Socket{before})
	if want := append([]tcp.Socket{before}, r.tcp...); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
}

// gVisor are files of a gVisor sandbox (runsc, September 2026): two listeners and two
// connections, both with five unread bytes; the program has accepted the first alone.
const gVisor Root = "testdata/gvisor"

// TestRecordedGVisor: listeners and accepted connections are there with their inodes. The
// queues are always 0, and a connection in the accept queue is only in the counters.
func TestRecordedGVisor(t *testing.T) {
	if !littleEndian() {
		t.Skip("recorded on a little-endian machine")
	}
	want := []tcp.Socket{
		{State: tcp.Established, Local: at("10.99.0.2:8080"), Remote: at("10.99.0.1:58204"), Inode: 11},
		{State: tcp.Listen, Local: at("0.0.0.0:8080"), Remote: at("0.0.0.0:0"), Inode: 6},
		{State: tcp.Listen, Local: at("[::]:8081"), Remote: at("[::]:0"), Inode: 7},
	}
	if got, err := gVisor.TCP(nil); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
	if got, err := gVisor.UDP(); err != nil || !slices.Equal(got, []UDP{{Local: at("0.0.0.0:5353"), Inode: 8}}) {
		t.Errorf("UDP: %+v, %v", got, err)
	}
	if got, err := gVisor.Unix(); err != nil || !slices.Equal(got, []Unix{{9, "@abstract"}, {10, "/tmp/sock"}}) {
		t.Errorf("Unix: %+v, %v", got, err)
	}
	if got, err := gVisor.Counters(); err != nil || got != (Counters{PassiveOpens: 2, InSegs: 6}) {
		t.Errorf("counters: %+v, %v", got, err)
	}
	if got, err := gVisor.LocalPorts(); err != nil || got != (PortRange{16000, 65535}) {
		t.Errorf("ports: %v, %v", got, err)
	}
}

func TestRecordedUDP(t *testing.T) {
	r := recordings[littleEndian()]
	got, err := r.root.UDP()
	if err != nil || !slices.Equal(got, r.udp) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, r.udp)
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
