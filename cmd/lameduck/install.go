package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

const installHelp = `lameduck install copies this program to DIR/lameduck, for other containers.

Usage: lameduck install DIR
`

// install copies the running program to DIR/lameduck, as an init container does with a volume
// from which another container runs programs. The copy is atomic, and a lameduck that
// runs from DIR goes on.
func install(args []string) int {
	if asksHelp(args) {
		return answer(installHelp)
	}
	args = cli.DropDashes(args)
	if len(args) != 1 || args[0] == "" {
		return fail(errors.New("install needs one existing directory: lameduck install DIR"))
	}
	if err := copySelf(filepath.Join(args[0], "lameduck")); err != nil {
		remedy := "give an existing directory, such as a mounted volume"
		if errors.Is(err, os.ErrPermission) {
			remedy = fmt.Sprintf("user %d may not write there: install as the directory's owner, such as root",
				os.Geteuid())
		}
		return fail(fmt.Errorf("cannot install into %s: %w: %s", shim.Quote(args[0]), err, remedy))
	}
	return 0
}

// copySelf writes the running program to a new file beside path, and renames the file to path.
func copySelf(path string) error {
	fresh, err := os.CreateTemp(filepath.Dir(path), ".lameduck-*")
	if err != nil {
		return err
	}
	defer os.Remove(fresh.Name()) // unless it is renamed
	program, err := os.ReadFile("/proc/self/exe")
	_, failed := fresh.Write(program)
	err = cmp.Or(err, failed, fresh.Chmod(0o755), fresh.Sync(), fresh.Close())
	if err != nil {
		return err
	}
	return os.Rename(fresh.Name(), path)
}
