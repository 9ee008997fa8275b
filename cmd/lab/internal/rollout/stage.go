package rollout

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/netns"
)

// A stage makes a network namespace, which belongs to a thread. /proc/PID/ns/net shows the
// main thread's, and only init is sure to run on the main thread.
func init() {
	if len(os.Args) > 2 && os.Args[1] == "rollout" && os.Args[2] == "stage" {
		runtime.LockOSThread()
	}
}

// stage runs as PID 1 of a replica's namespaces: stage makes a network namespace, prints
// unshared, waits for the connection (the end of standard input), and becomes the command.
//
// CLONE_NEWNET in clone(2) would take long while many namespaces are made and removed, and
// Go's runtime, and with it the load, would stand still meanwhile.
func stage(args []string) error {
	address, command := args[0], args[1:]
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("cannot make a network namespace: %w", err)
	}
	fmt.Println("unshared")
	io.Copy(io.Discard, os.Stdin)
	if err := netns.MountProc(); err != nil {
		return err
	}
	if err := netns.LoopbackUp(); err != nil {
		return err
	}
	if err := up("eth0", net.ParseIP(address)); err != nil {
		return err
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	return fmt.Errorf("cannot become %q: %w", path, syscall.Exec(path, command, os.Environ()))
}
