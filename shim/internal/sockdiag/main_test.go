package sockdiag

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The tests run in a network namespace of their own, where there are no sockets
// but theirs.

// inside marks the test binary that runs in the namespace.
const inside = "SOCKDIAG_TEST_INSIDE"

// noNamespace is why there is no namespace, where there is none.
var noNamespace string

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "nobody":
		nobody(os.Args[2])
		os.Exit(0)
	case os.Getenv(inside) != "":
		if err := loopbackUp(); err != nil {
			fmt.Fprintln(os.Stderr, "loopback:", err)
			os.Exit(1)
		}
	case strings.Contains(strings.Join(os.Args, " "), "-test.fuzz="):
		noNamespace = "a fuzzer's workers are talked to over pipes"
	default:
		for _, flags := range []uintptr{0, syscall.CLONE_NEWUSER} {
			code, err := again(flags | syscall.CLONE_NEWNET)
			if err == nil {
				os.Exit(code)
			}
			noNamespace = err.Error()
		}
	}
	os.Exit(m.Run())
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

func needNamespace(t testing.TB) {
	if noNamespace != "" {
		t.Skip("no network namespace of our own: ", noNamespace)
	}
}
