package sig

import "unsafe"

// What the ELF entry point saw; see entry_amd64.s. On other machines, or where
// the linker was not told of it, nothing is known and all stay zero.
var (
	entryBlocked, entryIgnored uint64
	entryAction                [4]uint64 // struct sigaction, as the kernel has it
	entryEnviron               **byte    // envp of execve(2): pointers to strings, ended by nil
	entrySeen                  bool
)

// Inherited is what was blocked and what was ignored when we were executed,
// for the command to have the same. Both are empty where it was not seen.
func Inherited() (blocked, ignored Set) {
	if !entrySeen {
		return 0, 0
	}
	return Set(entryBlocked), Set(entryIgnored)
}

// Environ returns the environment that execve(2) passed, entry by entry. ok is false
// where our entry point did not run.
func Environ() (env []string, ok bool) {
	if !entrySeen {
		return nil, false
	}
	for p := entryEnviron; *p != nil; p = (**byte)(unsafe.Add(unsafe.Pointer(p), unsafe.Sizeof(p))) {
		env = append(env, stringAt(*p))
	}
	return env, true
}

// stringAt returns the string at p, which a zero byte ends. The memory is the stack that
// the process started with, which stays.
func stringAt(p *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return unsafe.String(p, n)
}
