// Package stage is where the laboratory plays: namespaces of its own, programs as PID 1 of
// namespaces, and links between their networks. See namespaces(7), pid_namespaces(7), veth(4).
package stage

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/internal/namespaces"
)

// All are the namespaces for Enter of a command that leaves no process behind.
const All = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID

// env names the variable that has the folder in the second process.
const env = "LAB_DIR"

// refused is the exit code of a second process that may not use its namespaces.
const refused = 77

// Parse parses the words of a command, and returns the path of its argument, the built lameduck.
func Parse(f *flag.FlagSet, args []string) (lameduck string) {
	must.Do(f.Parse(args))
	must.Be(f.NArg() == 1, "want one argument, the built lameduck: %s", f.Name())
	must.Get(os.Stat(f.Arg(0)))
	return must.Get(filepath.Abs(f.Arg(0)))
}

// Enter runs the program again with the same arguments in new namespaces, the flags of clone(2),
// and exits with its exit code. In the second process Enter returns a folder for temporary files,
// with lo up and /proc mounted. The second process dies with the first, and gets TERM when ctx ends,
// so that it can clean up.
//
// A user namespace, whose only user is root, is added where the kernel refuses the others.
func Enter(ctx context.Context, flags uintptr) (dir string) {
	if dir := os.Getenv(env); dir != "" {
		os.Unsetenv(env)
		err := must.Try(func() {
			must.Do(namespaces.Up())             // lo
			if flags&syscall.CLONE_NEWPID != 0 { // they have a proc(5) of their own
				must.Do(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
				must.Do(unix.Mount("proc", "/proc", "proc", 0, ""))
			}
		})
		if err != nil {
			os.Exit(refused)
		}
		return dir
	}
	// Where /tmp is mounted noexec, go run needs GOTMPDIR too.
	dir = must.Get(os.MkdirTemp(os.Getenv("GOTMPDIR"), "lameduck-lab-"))
	defer os.RemoveAll(dir)
	must.Do(os.Chmod(dir, 0o755)) // some programs run as another user
	runtime.LockOSThread()        // the parent-death signal belongs to the forking thread
	defer runtime.UnlockOSThread()
	var err error
	for _, user := range []uintptr{0, syscall.CLONE_NEWUSER} {
		cmd := namespaces.Again(flags|user, env+"="+dir)
		if flags&syscall.CLONE_NEWPID == 0 { // else all its processes shall die
			cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
		}
		if err = cmd.Start(); err != nil {
			continue
		}
		context.AfterFunc(ctx, func() { cmd.Process.Signal(syscall.SIGTERM) })
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != refused {
			os.RemoveAll(dir)
			os.Exit(max(code, -code)) // -1 after a signal; the second process has printed why
		}
		err = syscall.EPERM
	}
	must.Be(false, "cannot make namespaces: %w", err)
	return ""
}
