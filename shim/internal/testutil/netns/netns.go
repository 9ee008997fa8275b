// Package netns runs the tests of a package in a new network namespace, without the
// sockets of other programs. Where unprivileged user namespaces are allowed, root is not
// needed.
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

// missing says why the tests have no namespaces of their own. Only Main sets missing,
// before the tests run.
var missing string

// Main, called at the end of a TestMain, runs the tests in a new network namespace and in
// the further namespaces of flags, such as CLONE_NEWNS. If new namespaces are not
// available, the tests run without, and Need skips. Main does not return.
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
		missing = "a fuzzer talks to its workers over pipes"
	default:
		for _, user := range []uintptr{0, syscall.CLONE_NEWUSER} {
			code, err := rerun(user | flags | syscall.CLONE_NEWNET)
			if err == nil {
				os.Exit(code)
			}
			missing = err.Error()
		}
	}
	os.Exit(m.Run())
}

// Need skips a test that would see or disturb the sockets of other programs.
func Need(t testing.TB) {
	t.Helper()
	if missing != "" {
		t.Skip("cannot make namespaces: ", missing)
	}
}

// rerun runs the test binary in new namespaces. An error means that the test binary could
// not be started.
func rerun(flags uintptr) (code int, err error) {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdin = os.Stdin
	cmd.Stdout = os.Stdout
	cmd.Stderr = os.Stderr
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

// Up brings up the loopback interface of a new network namespace; see netdevice(7).
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
