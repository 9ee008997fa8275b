package sig

// What the ELF entry point saw; see entry_amd64.s. On other machines, or where
// the linker was not told of it, nothing is known and all stay zero.
var (
	entryBlocked, entryIgnored uint64
	entryAction                [4]uint64 // struct sigaction, as the kernel has it
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
