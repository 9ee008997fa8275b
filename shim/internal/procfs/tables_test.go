package procfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// fakeProc returns a directory with the sections of a text, each in the file that it names.
func fakeProc(t testing.TB, text string) Root { return Root(testutil.Files(t, text)) }

// decode returns what the tables show, a line each.
func (r Root) decode() string {
	var text strings.Builder
	r.TCP(func(s *tcp.Socket) {
		fmt.Fprintf(&text, "TCP, state %d: %v from %v, unread %d, inode %d\n", s.State, s.Local, s.Remote, s.Unread, s.Inode)
	})
	packets, _ := r.UDP()
	for _, s := range packets {
		fmt.Fprintf(&text, "UDP %v, inode %d\n", s.Local, s.Inode)
	}
	local, _ := r.Unix()
	fmt.Fprintln(&text, "Unix", local)
	counters, _ := r.Counters()
	ports := r.LocalPorts()
	fmt.Fprintf(&text, "%+v\nports %v\n", counters, ports)
	return text.String()
}

// TestRecorded: what a Linux 6.18 on amd64, or a Linux 6.1 on s390x, showed of known sockets, and a gVisor
// sandbox (runsc, September 2026). The path of a Unix socket is printed unescaped, and may begin with a
// newline. The sandbox has two listeners and two connections, both with five unread bytes; the program has
// accepted the first alone. Listeners and accepted connections are there with their inodes. The queues are
// always 0, and a connection in the accept queue is only in the counters.
func TestRecorded(t *testing.T) {
	recordings := []string{"linux", "gvisor"}
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		recordings = []string{"big-endian"}
	}
	for _, name := range recordings {
		text, want, _ := strings.Cut(string(testutil.Must(os.ReadFile("testdata/"+name+".txt"))), "\n== decoded\n")
		if got := fakeProc(t, text).decode(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

const (
	tcpHeader  = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	tcpRow     = "   0: 7F00007F:1F90 00000000:0000 0A 00000000:00000001 00:00000000 00000000     0        0 77 3 0 100 0 21 10 0\n"
	unixHeader = "Num       RefCount Protocol Flags    Type St Inode Path\n"
	unixRow    = "0000000000000000: 00000002 00000000 00010000 0001 01 77 /a\n"
	snmpNames  = "Tcp: ActiveOpens PassiveOpens InSegs OutRsts\n"
	tcpShown   = "[{10 127.0.0.127:8080 0.0.0.0:0 1 0 0 77 0 0 false {0s 0s 0s 0 0 0 0 true 0 0 0 0s 0}}]"
	statLine   = "12 (a) Z 1 (b c) S 7 12 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 99 1000\n"
)

// readers read files of this package.
var readers = map[string]func(Root) (any, error){
	"net/tcp": func(r Root) (any, error) {
		var found []tcp.Socket
		err := r.eachSocket("net/tcp", func(s *tcp.Socket) bool {
			found = append(found, *s)
			return true
		})
		return found, err
	},
	"net/unix": func(r Root) (any, error) { return r.Unix() },
	"net/snmp": func(r Root) (any, error) { return r.Counters() },
	"12/stat":  func(r Root) (any, error) { return r.Process(12) },
}

// show returns what the reader of a file shows of a text.
func show(t *testing.T, name, text string) (any, error) {
	root := fakeProc(t, "== "+name+"\n")
	testutil.WriteFile(t, root.path(system, name), text)
	return readers[name](root)
}

// TestNonsense: what a good text shows, and faults anywhere in it, which are errors.
func TestNonsense(t *testing.T) {
	for name, c := range map[string]struct {
		good, shows string
		wrong       []string // texts, or OLD→NEW of a part of the good one
	}{
		"net/tcp": {tcpHeader + tcpRow, tcpShown, []string{
			"", "\n", tcpRow, "21 10 0\n→21", "7F00007F:1F90→7F0000F:1F90", "7F:1F→7F1F",
			"0A→XA", "0:00000001→0-00000001", "77→x", "77→4294967296",
			"77 3 0 100 0 21 10 0→", tcpHeader + strings.Repeat("0", longest+1) + "\n",
		}},
		"net/unix": {unixHeader + unixRow, "[77]", []string{
			"", tcpHeader, "77→7x", "00010000→0001000x", "/a\n→/a", "77 /a→77\nx",
		}},
		"net/snmp": {snmpNames + "Tcp: 1 2 3 4\n", "{1 2 3 4 0}", []string{
			"", snmpNames, "ActiveOpens→A", "1 2 3 4→1 2 3", "2 3→x 3", "4\n→4",
		}},
		"12/stat": {statLine, "{a) Z 1 (b c 12 7 12 83 3 99}", []string{
			"", "12", "12 (sh)", "12 (sh) S 7", "3 0 99 1000\n→",
		}},
	} {
		if got, err := show(t, name, c.good); fmt.Sprint(got) != c.shows || err != nil {
			t.Errorf("%s: %v, %v; want %s", name, got, err, c.shows)
		}
		for _, wrong := range c.wrong {
			text := wrong
			if from, to, found := strings.Cut(wrong, "→"); found {
				text = strings.Replace(c.good, from, to, 1)
			}
			if got, err := show(t, name, text); err == nil || text == c.good {
				t.Errorf("%s: %+v in %q", name, got, text)
			}
		}
	}
}

// FuzzFiles: no text makes a reader fail, and a table of TCP has a socket in each row.
func FuzzFiles(f *testing.F) {
	for _, text := range []string{
		tcpHeader + tcpRow, unixHeader + unixRow, snmpNames + "Tcp: 1 2 3 4\n", statLine, mountinfo,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name := range readers {
			found, err := show(t, name, text)
			rows, isTable := found.([]tcp.Socket)
			if want := strings.Count(text, "\n") - 1; isTable && err == nil && len(rows) != want {
				t.Errorf("%s: %d sockets from %d rows", name, len(rows), want)
			}
		}
		parseMounts(text)
	})
}

// TestAbsent: only the files of IPv6 may be missing.
func TestAbsent(t *testing.T) {
	closing := strings.Replace(tcpRow, " 0A ", " 08 ", 1) // its unread byte is a FIN
	ipv4 := "== net/tcp\n" + tcpHeader + closing + "== net/udp\n" + tcpHeader + tcpRow
	for files, want := range map[string]error{
		"":   fs.ErrNotExist,
		ipv4: nil,
		ipv4 + "== net/tcp6\nnonsense\n== net/udp6\nnonsense\n": errHeader,
	} {
		root := fakeProc(t, files)
		var unread uint32
		if err := root.TCP(func(s *tcp.Socket) { unread += s.Unread }); !errors.Is(err, want) || unread > 0 {
			t.Errorf("%q: TCP %d, %v", files, unread, err)
		}
		if got, err := root.UDP(); !errors.Is(err, want) {
			t.Errorf("%q: UDP %v, %v", files, got, err)
		}
	}
}

// TestDatagrams: those of both families count, and an unreadable figure is an error.
func TestDatagrams(t *testing.T) {
	const four = "== net/snmp\nUdp: InDatagrams NoPorts\nUdp: 7 1\n== net/snmp6\n"
	for files, want := range map[string]uint64{
		four: 7,
		four + "Ip6InReceives  \t9\nUdp6InDatagrams                 \t5\nUdp6NoPorts \t1\n": 12,
		four + "UdpLite6InDatagrams \t5\n":                                                  7,
		four + "Udp6InDatagrams \tx\n":                                                      0,
		"== net/snmp\nUdp: NoPorts\nUdp: 1\n":                                               0,
		"":                                                                                  0,
	} {
		if n, err := fakeProc(t, files).Datagrams(); (err != nil) != (want == 0) || err == nil && n != want {
			t.Errorf("%q: %d, %v; want %d", files, n, err, want)
		}
	}
}

// TestAllocations: reading a row allocates nothing.
func TestAllocations(t *testing.T) {
	count := func(rows int) float64 {
		root := fakeProc(t, "== net/tcp\n"+tcpHeader+strings.Repeat(tcpRow, rows))
		return testing.AllocsPerRun(10, func() { root.eachSocket("net/tcp", func(*tcp.Socket) bool { return true }) })
	}
	if one, thousand := count(1), count(1000); thousand > one {
		t.Errorf("%v allocations for a row, %v for a thousand", one, thousand)
	}
}
