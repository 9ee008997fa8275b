package e2e

import (
	"bytes"
	"debug/elf"
	le "encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Programs of a few machine instructions: small to fork, and without a loader.

// pauseProgram returns a program that sleeps forever. Unlike every other program,
// pauseProgram needs no file descriptor to be loaded.
func pauseProgram(t *testing.T) (path string) {
	t.Helper()
	path = writeELF(t, map[string][]byte{
		"amd64": {0x6a, 34, 0x58, 0x0f, 5, 0xeb, 0xf9},                           // pause, again
		"arm64": {0x28, 0x09, 0x80, 0xd2, 1, 0, 0, 0xd4, 0xfe, 0xff, 0xff, 0x17}, // ppoll of no descriptors, again
	})
	if path == "" {
		t.Skip("no machine code for ", runtime.GOARCH)
	}
	return path
}

// orphanMaker returns a program that makes 100,000 orphans: a thousand children one after
// the other, each with a hundred children left behind. The time of a fork grows with the
// size of the process, so the program is as small as possible.
func orphanMaker(t *testing.T) (path string) {
	script := "#!/bin/sh\ni=0; while [ $i -lt 1000 ]; do (j=0; while [ $j -lt 100 ]; do : & j=$((j+1)); done); i=$((i+1)); done\n"
	path = writeELF(t, map[string][]byte{"amd64": {
		0x41, 0xbc, 0xe8, 3, 0, 0, //       mov  $1000, %r12d
		0x6a, 56, 0x58, 0x6a, 17, 0x5f, //  parent: eax = clone, edi = SIGCHLD
		0x31, 0xf6, 0x0f, 5, //             esi = 0; syscall
		0xbb, 100, 0, 0, 0, //              mov  $100, %ebx
		0x85, 0xc0, 0x74, 19, //            in the child: go to orphan
		0x89, 0xc7, 0x6a, 61, 0x58, //      edi = the child, eax = wait4
		0x31, 0xd2, 0x45, 0x31, 0xd2, //    edx, r10d = 0
		0x0f, 5, 0x41, 0xff, 0xcc, //       syscall; dec %r12d
		0x75, 0xdc, 0xeb, 18, //            if not zero: go to parent, else to exit
		0x6a, 56, 0x58, //                  orphan: eax = clone
		0xbf, 0x11, 0x41, 0, 0, 0x0f, 5, // edi = CLONE_VM|CLONE_VFORK|SIGCHLD; syscall
		0x85, 0xc0, 0x74, 4, //             in the child: go to exit
		0xff, 0xcb, 0x75, 0xee, //          dec %ebx; if not zero: go to orphan
		0xb8, 231, 0, 0, 0, 0x31, 0xff, //  exit: eax = exit_group, edi = 0
		0x0f, 5, //                         syscall
	}})
	if path == "" {
		path = filepath.Join(t.TempDir(), "script")
		writeExecutable(t, path, []byte(script))
	}
	return path
}

// writeELF writes an executable with the machine code for this processor, and returns ""
// if codes has none.
func writeELF(t *testing.T, codes map[string][]byte) (path string) {
	t.Helper()
	code, machine := codes[runtime.GOARCH], elf.EM_X86_64
	if runtime.GOARCH == "arm64" {
		machine = elf.EM_AARCH64
	}
	if code == nil {
		return ""
	}
	const base, header = 0x400000, 64 + 56
	size := uint64(header + len(code))
	var file bytes.Buffer
	for _, part := range []any{
		elf.Header64{
			Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
			Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: 1, Entry: base + header, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
		},
		elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: base, Paddr: base, Filesz: size, Memsz: size, Align: 4096},
		code,
	} {
		le.Write(&file, le.LittleEndian, part)
	}
	path = filepath.Join(t.TempDir(), "program")
	writeExecutable(t, path, file.Bytes())
	return path
}

func writeExecutable(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
}
