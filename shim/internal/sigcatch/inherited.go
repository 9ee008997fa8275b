package sigcatch

import (
	"unsafe"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// The entry point writes these; see entry_amd64.s. On other machines, and if the linker
// was not given -E, all stay zero.
var (
	entryBlocked, entryIgnored uint64
	entryAction                [4]uint64 // struct sigaction, as the kernel has it
	entryEnviron               **byte    // envp of execve(2): pointers to strings, ended by nil
	entrySeen                  bool
)

// Inherited returns the signals that were blocked and ignored when the program was
// executed, for the command to inherit. Both are empty without the entry point.
func Inherited() (blocked, ignored sig.Set) { return sig.Set(entryBlocked), sig.Set(entryIgnored) }

// added is how many variables the entry point adds at the end of the environment.
const added = 2

// Environ returns the environment that execve(2) passed, entry by entry; ok is false
// without the entry point.
func Environ() (env []string, ok bool) {
	if !entrySeen {
		return nil, false
	}
	n := 0
	for *environ(n) != nil {
		n++
	}
	env = make([]string, n-added)
	for i := range env {
		env[i] = entryAt(*environ(i))
	}
	return env, true
}

// environ returns the address of the pointer to the entry with the number i.
func environ(i int) **byte {
	return (**byte)(unsafe.Add(unsafe.Pointer(entryEnviron), uintptr(i)*unsafe.Sizeof(entryEnviron)))
}

// entryAt returns the string at p, which a zero byte ends, with the G that the entry point
// skips: otherwise the string before ends at p, with a zero byte. The memory is the initial
// stack of the process, which stays.
func entryAt(p *byte) string {
	if before := (*byte)(unsafe.Add(unsafe.Pointer(p), -1)); *before == 'G' {
		p = before
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return unsafe.String(p, n)
}
