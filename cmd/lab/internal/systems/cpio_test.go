package systems

import (
	"strconv"
	"testing"
)

// member is a file of an archive, as the kernel reads it.
type member struct {
	name, data   string
	mode         uint64
	major, minor uint64
}

// readArchive is the reader in the kernel's init/initramfs.c: fixed offsets, and an
// alignment to four bytes from the start of the archive.
func readArchive(t *testing.T, b []byte) (members []member) {
	t.Helper()
	field := func(at, i int) uint64 {
		n, err := strconv.ParseUint(string(b[at+6+8*i:at+14+8*i]), 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	align := func(n int) int { return (n + 3) &^ 3 }
	for at := 0; at < len(b); {
		if string(b[at:at+6]) != "070701" {
			t.Fatalf("no magic at %d: %q", at, b[at:at+6])
		}
		const header = 110
		size, nameSize := int(field(at, 6)), int(field(at, 11))
		data := align(at + header + nameSize)
		members = append(members, member{
			string(b[at+header : at+header+nameSize-1]), string(b[data : data+size]), field(at, 1), field(at, 9), field(at, 10),
		})
		at = align(data + size)
	}
	return members
}

func TestArchive(t *testing.T) {
	a := &archive{}
	a.directory("dev")
	a.device("dev/console", 5, 1)
	a.file("odd", []byte("12345"))
	a.file("empty", nil)
	want := []member{
		{name: "dev", mode: 0o040755},
		{name: "dev/console", mode: 0o020600, major: 5, minor: 1},
		{name: "odd", data: "12345", mode: 0o100755},
		{name: "empty", mode: 0o100755},
		{name: "TRAILER!!!"},
	}
	got := readArchive(t, a.bytes())
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
}
