package box

import (
	"bytes"
	"debug/elf"
	le "encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// orphanCode is for amd64: a thousand children one after the other, each with a hundred
// children left behind.
const orphanCode = "\x41\xbc\xe8\x03\x00\x00" + // mov  $1000, %r12d
	"\x6a\x38\x58\x6a\x11\x5f" + //             parent: eax = clone, edi = SIGCHLD
	"\x31\xf6\x0f\x05" + //                     esi = 0; syscall
	"\xbb\x64\x00\x00\x00" + //                 mov  $100, %ebx
	"\x85\xc0\x74\x13" + //                     in the child: go to orphan
	"\x89\xc7\x6a\x3d\x58" + //                 edi = the child, eax = wait4
	"\x31\xd2\x45\x31\xd2" + //                 edx, r10d = 0
	"\x0f\x05\x41\xff\xcc" + //                 syscall; dec %r12d
	"\x75\xdc\xeb\x12" + //                     if not zero: go to parent, else to exit
	"\x6a\x38\x58" + //                         orphan: eax = clone
	"\xbf\x11\x41\x00\x00\x0f\x05" + //         edi = CLONE_VM|CLONE_VFORK|SIGCHLD; syscall
	"\x85\xc0\x74\x04" + //                     in the child: go to exit
	"\xff\xcb\x75\xee" + //                     dec %ebx; if not zero: go to orphan
	"\xb8\xe7\x00\x00\x00\x31\xff\x0f\x05" //   exit: eax = exit_group, edi = 0; syscall

// OrphanMaker returns a program that makes 100,000 orphans. The time of a fork grows with
// the size of the process, so the program is as small as possible.
func OrphanMaker(t *testing.T) (path string) {
	t.Helper()
	program := []byte("#!/bin/sh\ni=0; while [ $i -lt 1000 ]; do (j=0; while [ $j -lt 100 ]; do : & j=$((j+1)); done); i=$((i+1)); done\n")
	if runtime.GOARCH == "amd64" {
		program = elfProgram(orphanCode)
	}
	return writeProgram(t, program)
}

// PauseProgram returns a program that sleeps forever, and needs no system call but pause(2)
// to be loaded.
func PauseProgram(t *testing.T) (path string) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("no machine code for ", runtime.GOARCH)
	}
	return writeProgram(t, elfProgram("\x6a\x22\x58\x0f\x05\xeb\xf9")) // pause, again
}

func writeProgram(t *testing.T, program []byte) (path string) {
	path = filepath.Join(testutil.Must(filepath.EvalSymlinks(t.TempDir())), "program")
	testutil.Must(0, os.WriteFile(path, program, 0o755))
	return path
}

// elfProgram returns an executable for amd64 with this machine code.
func elfProgram(code string) []byte {
	const base, header = 0x400000, 64 + 56
	size := uint64(header + len(code))
	var file bytes.Buffer
	le.Write(&file, le.LittleEndian, elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Entry: base + header, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	})
	le.Write(&file, le.LittleEndian, elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: base, Paddr: base, Filesz: size, Memsz: size, Align: 4096})
	file.WriteString(code)
	return file.Bytes()
}
