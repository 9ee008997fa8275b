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

// A stage enters a network namespace, which is its thread's; that must be the
// main one, by which others find it. Only here is the main goroutine sure to be.
func init() {
	if len(os.Args) > 2 && os.Args[1] == "rollout" && os.Args[2] == "stage" {
		runtime.LockOSThread()
	}
}

// stage runs as PID 1 of a replica's namespaces: it makes its network namespace,
// says so, waits until it is connected (its input ends), and becomes the command.
//
// The namespace is not made by clone(2) itself: that takes long where many are
// made and taken away, and Go's runtime stands still meanwhile, the load with it.
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
