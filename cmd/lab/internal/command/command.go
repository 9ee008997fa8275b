// Package command has what the commands of the laboratory share.
package command

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/lameduck-init/lameduck/cmd/lab/netns"
)

// Parse parses the words of a command, and returns the path of its argument, the built lameduck,
// which is not needed with the flags alone.
func Parse(f *flag.FlagSet, args []string, alone ...string) (lameduck string, err error) {
	if err := f.Parse(args); err != nil {
		return "", err
	}
	needed := true
	f.Visit(func(set *flag.Flag) { needed = needed && !slices.Contains(alone, set.Name) })
	if !needed {
		return "", nil
	}
	if f.NArg() != 1 {
		return "", fmt.Errorf("want one argument, the built lameduck: %s", f.Name())
	}
	if _, err := os.Stat(f.Arg(0)); err != nil {
		return "", err
	}
	return filepath.Abs(f.Arg(0))
}

// Enter enters new namespaces, of networks, mounts and processes, so that no process outlives the
// command, and returns a folder for temporary files; see netns.Namespaces.
func Enter(rootOnly bool) (dir string, err error) {
	return netns.Namespaces{Flags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Env: "LAB_DIR", RootOnly: rootOnly}.Enter()
}
