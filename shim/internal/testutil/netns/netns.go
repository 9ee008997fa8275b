// Package netns is test help: it runs a package's tests in a network namespace of
// their own, where there are no sockets but theirs. It needs no root where
// unprivileged user namespaces are allowed.
//
// See network_namespaces(7), user_namespaces(7).
package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inside marks the test binary that runs in the namespaces.
const inside = "LAMEDUCK_TEST_INSIDE"

// missing is why there are no namespaces, where there are none. Main sets it, once.
var missing string

// Main is for the end of a TestMain: it runs the tests in a new network namespace,
// and in what flags (CLONE_NEWNS and the like) name beside it. Where that cannot
// be had they run where they are, and Need skips. It does not return.
func Main(m *testing.M, flags uintptr) {
	switch {
	case os.Getenv(inside) != "":
		os.Unsetenv(inside)
		if err := Up(); err != nil {
			fmt.Fprintln(os.Stderr, "loopback:", err)
			os.Exit(1)
		}
	case slices.ContainsFunc(os.Args, func(arg string) bool {
		return strings.HasPrefix(arg, "-test.fuzz=") || strings.HasPrefix(arg, "-test.fuzzworker")
	}):
		missing = "a fuzzer's workers are talked to over pipes"
	default:
		for _, user := range []uintptr{0, syscall.CLONE_NEWUSER} {
			code, err := again(user | flags | syscall.CLONE_NEWNET)
			if err == nil {
				os.Exit(code)
			}
			missing = err.Error()
		}
	}
	os.Exit(m.Run())
}

// Need skips a test that would see, or disturb, the sockets of others.
func Need(t testing.TB) {
	t.Helper()
	if missing != "" {
		t.Skip("no namespaces of our own: ", missing)
	}
}

// again runs this test binary in new namespaces, and is an error where it could
// not be started there.
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

// Up brings up the loopback interface of a new namespace; see netdevice(7).
func Up() error {
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
