package systems

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// object is an ELF file with a section, .modinfo, and the table of the names.
func object(t *testing.T, info string) []byte {
	t.Helper()
	const names, headerLen, sectionLen = "\x00.modinfo\x00.names\x00", 64, 64
	end := uint64(headerLen + len(info) + len(names))
	header := elf.Header64{
		Ident:   [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2MSB), byte(elf.EV_CURRENT)},
		Type:    uint16(elf.ET_REL),
		Machine: uint16(elf.EM_S390),
		Version: uint32(elf.EV_CURRENT),
		Shoff:   end, Ehsize: headerLen, Shentsize: sectionLen, Shnum: 3, Shstrndx: 2,
	}
	sections := []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: headerLen, Size: uint64(len(info))},
		{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: uint64(headerLen + len(info)), Size: uint64(len(names))},
	}
	var b bytes.Buffer
	for _, part := range []any{header, []byte(info + names), sections} {
		if err := binary.Write(&b, binary.BigEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// TestDependencies: each module comes once, after the modules it depends on, and what
// has no file is part of the kernel.
func TestDependencies(t *testing.T) {
	dir := t.TempDir()
	for name, depends := range map[string]string{
		"tcp_diag.ko":     "inet_diag",
		"inet_diag.ko":    "",
		"virtio-net.ko":   "net_failover,virtio",
		"net_failover.ko": "failover",
		"other.ko":        "tcp_diag",
	} {
		info := "license=GPL\x00depends=" + depends + "\x00name=x\x00"
		if err := os.WriteFile(filepath.Join(dir, name), object(t, info), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := readModules(dir)
	if err != nil {
		t.Fatal(err)
	}
	modules, err := tree.withDependencies("tcp_diag", "virtio_net", "inet_diag", "virtio_pci")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range modules {
		got = append(got, m.name)
	}
	if want := []string{"inet_diag", "tcp_diag", "net_failover", "virtio_net"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestModuleName(t *testing.T) {
	for path, want := range map[string]string{
		"a/tcp_diag.ko": "tcp_diag", "a/tcp-diag.ko.xz": "tcp_diag", "x.ko.zst": "x", "modules.dep": "", "x.ko.bak": "", "x.xz": "",
	} {
		got, ok := moduleName(path)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: got %q, %v; want %q", path, got, ok, want)
		}
	}
}
