package procfs

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

func littleEndian() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }

const (
	tcpHeader  = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	unixHeader = "Num       RefCount Protocol Flags    Type St Inode Path\n"
	tcpRow     = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000001 00:00000000 00000000     0        0 77 3 0 100 0 0 10 0\n"
	unixRowOf  = "0000000000000000: 00000002 00000000 00010000 0001 01 77 "
)

// tcpSockets returns the sockets of a table of TCP.
func tcpSockets(table string) (sockets []tcp.Socket, err error) {
	err = eachRow(strings.NewReader(table), func(r row) bool {
		sockets = append(sockets, r.Socket)
		return isTCP(&r)
	})
	return sockets, err
}

// TestNonsenseRows: a fault anywhere in a good row is an error.
func TestNonsenseRows(t *testing.T) {
	if got, err := tcpSockets(tcpHeader + tcpRow); err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	for old, broken := range map[string]string{
		"0:": "0", "0100007F:1F90": "0100007:1F90", "1F90": "1F9", "7F:1F": "7F1F", "0A": "XA", "0A ": "1A ",
		"0:00000001": "0-00000001", "0000001 ": "000001 ", " 0        0 77": " -1        0 77", "77": "x", " 77": " 4294967296",
		"77 3 0 100 0 0 10 0": "", "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000001": "",
	} {
		row := strings.Replace(tcpRow, old, broken, 1)
		if row == tcpRow {
			t.Fatalf("%q is not in the row", old)
		}
		if got, err := tcpSockets(tcpHeader + row); err == nil {
			t.Errorf("%q for %q: %+v", broken, old, got)
		}
	}
}

func TestNonsenseTables(t *testing.T) {
	tables := map[string]error{
		"":                                 errHeader,
		"\n":                               errHeader,
		tcpRow:                             errHeader,
		strings.TrimRight(tcpHeader, "\n"): errCut,
		tcpHeader + tcpRow[:90]:            errCut,
		tcpHeader + strings.Repeat("0", longest+1) + "\n": bufio.ErrTooLong,
	}
	for table, want := range tables {
		if _, err := tcpSockets(table); err != want {
			t.Errorf("%.40q: %v, want %v", table, err, want)
		}
	}
	for _, table := range []string{"", tcpHeader, unixHeader + "x\n", unixHeader + unixRowOf + "/a", unixHeader + strings.TrimSpace(unixRowOf) + "\nx\n",
		unixHeader + strings.Replace(unixRowOf, "77", "7x", 1) + "/a\n", unixHeader + strings.Replace(unixRowOf, "00010000", "0001000", 1) + "/a\n"} {
		if got, err := parseUnix(strings.NewReader(table)); err == nil {
			t.Errorf("Unix, %q: %v", table, got)
		}
	}
	const names = "Tcp: ActiveOpens PassiveOpens InSegs OutRsts\n"
	if _, err := parseCounters(names + "Tcp: 1 2 3 4\n"); err != nil {
		t.Error(err)
	}
	for _, table := range []string{"", names, "Tcp: A\nTcp: 1\n", "Tcp: PassiveOpens InSegs OutRsts\nTcp: 1 2 3\n", names + "Tcp: 1 2 3\n", names + "Tcp: 1 x 3 4\n", names + "Tcp: 1 2 3 4"} {
		if c, err := parseCounters(table); err == nil {
			t.Errorf("snmp, %q: %+v", table, c)
		}
	}
	for _, text := range []string{"", "1\n", "2 1\n", "0 5\n", "1 65536\n", "1 2 3\n", "a b\n", "1 2"} {
		if r, err := parsePortRange(text); err == nil {
			t.Errorf("range, %q: %v", text, r)
		}
	}
}

// TestAbsent: only the files of IPv6 may be missing, and no part of a broken list is returned.
func TestAbsent(t *testing.T) {
	dir := t.TempDir()
	root := Root(dir)
	os.Mkdir(filepath.Join(dir, "net"), 0o755)
	want := func(what string, sockets, packets int, want error) {
		t.Helper()
		if got, err := root.TCP([]tcp.Socket{{Inode: 1}}); !errors.Is(err, want) || len(got) != sockets {
			t.Errorf("%s: TCP %v, %v", what, got, err)
		}
		if got, err := root.UDP(); !errors.Is(err, want) || len(got) != packets {
			t.Errorf("%s: UDP %v, %v", what, got, err)
		}
	}
	want("no files", 1, 0, fs.ErrNotExist)
	if _, err := root.Unix(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without unix: %v", err)
	}
	write(t, dir, "net/tcp", tcpHeader+tcpRow)
	write(t, dir, "net/udp", tcpHeader+tcpRow)
	want("no IPv6", 2, 1, nil)
	write(t, dir, "net/tcp6", "nonsense\n")
	write(t, dir, "net/udp6", "nonsense\n")
	want("broken IPv6", 1, 0, errHeader)
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestAllocations: reading a row allocates nothing.
func TestAllocations(t *testing.T) {
	few := tcpHeader + tcpRow
	many := tcpHeader + strings.Repeat(tcpRow, 1000)
	into := make([]tcp.Socket, 0, 1000)
	count := func(table string) float64 {
		file := strings.NewReader(table)
		return testing.AllocsPerRun(10, func() {
			file.Seek(0, io.SeekStart)
			found := into
			err := eachRow(file, func(r row) bool {
				found = append(found, r.Socket)
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	if one, thousand := count(few), count(many); thousand > one {
		t.Errorf("%v allocations for a row, %v for a thousand", one, thousand)
	}
}

// FuzzTables: the parsers return the sockets of any file, and no others.
func FuzzTables(f *testing.F) {
	recorded := string(unpack(f, "testdata/linux.txt"))
	for _, name := range []string{"net/tcp", "net/tcp6", "net/udp", "net/unix", "net/snmp", "sys/net/ipv4/ip_local_port_range"} {
		text, err := os.ReadFile(filepath.Join(recorded, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(tcpHeader + tcpRow)
	f.Add(unixHeader + unixRowOf + "/a\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := tcpSockets(text)
		if rows := strings.Count(text, "\n") - 1; err == nil && len(got) != rows {
			t.Errorf("%d sockets from %d rows", len(got), rows)
		}
		for _, s := range got {
			if !s.Local.IsValid() && err == nil || s.Local.Addr().Is4In6() || s.Remote.Addr().Is4In6() {
				t.Errorf("%+v", s)
			}
		}
		unix, _ := parseUnix(strings.NewReader(text))
		for _, s := range unix {
			if !strings.Contains(text, s.Path) {
				t.Errorf("%+v", s)
			}
		}
		if r, err := parsePortRange(text); err == nil && (r.First == 0 || r.First > r.Last) {
			t.Errorf("%+v", r)
		}
		if c, err := parseCounters(text); err == nil && !strings.Contains(text, "PassiveOpens") {
			t.Errorf("%+v from nowhere", c)
		}
	})
}
