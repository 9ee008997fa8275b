//go:build linux

package shim

import (
	"bytes"
	"cmp"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
)

// programMarker occurs in every lameduck binary.
const programMarker = "lameduck-init/lameduck"

// Entrypoint returns the command line and the environment of PID 1, and whether PID 1 is a
// lameduck, under any name. An environment that cannot be read is nil. PID 1 itself has no
// entrypoint.
func Entrypoint() (argv, env []string, isLameduck bool) {
	var proc procfs.Root
	argv, _ = proc.Arguments(1)
	if len(argv) == 0 || os.Getpid() == 1 {
		return nil, nil, false
	}
	exe, _ := proc.Executable(1) // an error if PID 1 runs as another user
	isLameduck = path.Base(cmp.Or(exe, argv[0])) == "lameduck" || contains("/proc/1/exe", programMarker)
	env, _ = proc.Environment(1)
	return argv, env, isLameduck
}

// maxSearched is how much of a program is searched. A lameduck binary has 5 MB.
const maxSearched = 16 << 20

// contains reports whether text occurs in the beginning of the file. The file is mapped, not
// read: the memory of a container may be short.
func contains(path, text string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false
	}
	size := min(info.Size(), maxSearched)
	data, err := unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return false
	}
	defer unix.Munmap(data)
	return bytes.Contains(data, []byte(text))
}
