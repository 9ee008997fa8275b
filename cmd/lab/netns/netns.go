// Package netns runs a program again in new namespaces, so that tests and experiments
// leave the machine's network alone and need no root where unprivileged user namespaces
// are allowed. See namespaces(7).
package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Namespaces are the new namespaces for Reenter.
type Namespaces struct {
	Flags uintptr // of clone(2), CLONE_NEWUSER aside
	Env   string  // NAME=VALUE, set in the second process alone
	// KeepUser maps the user to the same user with the capabilities for mounts and
	// networks, rather than to root: nginx as root would change to another user, and a
	// namespace of one user has no other.
	KeepUser bool
	// RootOnly adds no user namespace.
	RootOnly bool
}

// Reenter runs the program with the same arguments in new namespaces and returns its
// exit code. A user namespace is added where the kernel refuses the others. SIGINT,
// SIGTERM and SIGHUP are passed on, so that the second process can clean up. The second
// process dies with the first: by SIGKILL if a PID namespace dies with it, else by
// SIGTERM.
func (n Namespaces) Reenter() (code int, err error) {
	runtime.LockOSThread() // the parent-death signal belongs to the forking thread
	defer runtime.UnlockOSThread()
	cmd := n.command(0)
	err = cmd.Start()
	if errors.Is(err, syscall.EPERM) && !n.RootOnly {
		cmd = n.command(syscall.CLONE_NEWUSER)
		err = cmd.Start()
	}
	if err != nil {
		return 0, fmt.Errorf("cannot make namespaces: %w", err)
	}
	passOn(cmd.Process)
	var exit *exec.ExitError
	err = cmd.Wait()
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil // -1 after a signal
	}
	return 0, err
}

// Enter runs the program again as Reenter does, with a folder for temporary files, and exits with
// its exit code. In the second process, where the variable that Env names has the folder, Enter
// returns the folder, with /proc mounted and lo up in new namespaces of processes and networks.
func (n Namespaces) Enter() (dir string, err error) {
	if dir := os.Getenv(n.Env); dir != "" {
		if n.Flags&syscall.CLONE_NEWPID != 0 {
			err = MountProc()
		}
		if n.Flags&syscall.CLONE_NEWNET != 0 {
			err = errors.Join(err, LoopbackUp())
		}
		return dir, err
	}
	dir, err = os.MkdirTemp(os.Getenv("GOTMPDIR"), "lameduck-lab-") // where /tmp is mounted noexec, go run needs GOTMPDIR too
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // some programs run as another user
		return "", err
	}
	n.Env += "=" + dir
	code, err := n.Reenter()
	if err == nil {
		os.RemoveAll(dir)
		os.Exit(code) // the second process has printed why
	}
	return "", err
}

func (n Namespaces) command(user uintptr) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdin = os.Stdin
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), n.Env)
	attr := &syscall.SysProcAttr{Cloneflags: n.Flags | user, Pdeathsig: syscall.SIGTERM}
	if n.Flags&syscall.CLONE_NEWPID != 0 {
		attr.Pdeathsig = syscall.SIGKILL
	}
	if user != 0 {
		n.mapUser(attr)
	}
	cmd.SysProcAttr = attr
	return cmd
}

func (n Namespaces) mapUser(attr *syscall.SysProcAttr) {
	uid, gid := 0, 0
	if n.KeepUser {
		uid, gid = os.Getuid(), os.Getgid()
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN}
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: os.Getgid(), Size: 1}}
}

func passOn(p *os.Process) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for s := range signals {
			p.Signal(s)
		}
	}()
}

// LoopbackUp brings up lo. See netdevice(7).
func LoopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open a socket: %w", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("cannot bring up lo: %w", err)
	}
	return nil
}

// MountProc mounts the proc(5) of the PID namespace on /proc, in the mount namespace
// alone.
func MountProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make the mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("cannot mount /proc: %w", err)
	}
	return nil
}
