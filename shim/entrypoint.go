package shim

import (
	"bytes"
	"io"
	"os"
	"path"

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
	exe, err := proc.Executable(1)
	if err != nil { // PID 1 runs as another user
		isLameduck = path.Base(argv[0]) == "lameduck"
	} else {
		isLameduck = path.Base(exe) == "lameduck" || contains("/proc/1/exe", programMarker)
	}
	env, _ = proc.Environment(1)
	return argv, env, isLameduck
}

// contains reports whether text occurs in the first 16 MiB of the file. A lameduck binary
// has 5.
func contains(path, text string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	buf := make([]byte, 0, 1<<16)
	for range 256 {
		n, err := io.ReadFull(file, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case bytes.Contains(buf, []byte(text)):
			return true
		case err != nil:
			return false
		}
		buf = append(buf[:0], buf[len(buf)-len(text):]...) // text may lie across two reads
	}
	return false
}
