package procnet

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inside marks the test binary that runs in a network namespace of its own.
const inside = "PROCNET_TEST_INSIDE"

// noNamespaces is why there is none, where there is none.
var noNamespaces string

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "helper-elsewhere" {
		elsewhere()
	}
	if os.Getenv(inside) == "" {
		for _, flags := range []uintptr{0, syscall.CLONE_NEWUSER} {
			code, err := again(flags | syscall.CLONE_NEWNET)
			if err == nil {
				os.Exit(code)
			}
			noNamespaces = err.Error()
		}
	} else if err := loopbackUp(); err != nil {
		fmt.Fprintln(os.Stderr, "loopback:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// elsewhere is a process in a network namespace without a socket; it says that
// it is ready, and stays while its standard input is open.
func elsewhere() {
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// again runs this test binary in new namespaces, and is an error where it
// could not be started there.
func again(flags uintptr) (code int, err error) {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: syscall.SIGKILL}
	if flags&syscall.CLONE_NEWUSER != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// loopbackUp brings up the new namespace's lo; see netdevice(7).
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}
