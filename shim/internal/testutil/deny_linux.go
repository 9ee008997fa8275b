package testutil

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Word is a word that the kernel shows to a filter of system calls: the offset in struct
// seccomp_data, see seccomp(2), and the value.
type Word struct{ Offset, Value uint32 }

// Arg is the word with an argument of a system call, which are counted from 0.
func Arg(n, value uint32) Word { return Word{16 + 8*n, value} }

// Deny makes a system call fail in this process, for good.
func Deny(number uint32, errno unix.Errno) error {
	return deny(unix.SECCOMP_FILTER_FLAG_TSYNC, number, errno, nil)
}

// DenyThread makes a system call, or only calls with arguments, fail in this thread, and in what it executes.
// The threads of Go's runtime need most system calls until then.
func DenyThread(number uint32, errno unix.Errno, args ...Word) error {
	return deny(0, number, errno, args)
}

func deny(flags uintptr, number uint32, errno unix.Errno, args []Word) error {
	words := append([]Word{{0, number}}, args...)
	var filter []unix.SockFilter
	for i, word := range words {
		otherwise := uint8(2*(len(words)-i) - 1) // skips up to the last instruction
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: word.Offset},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: otherwise, K: word.Value})
	}
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno = unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}
