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

	"github.com/lameduck-init/lameduck/internal/namespaces"
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
		if err := namespaces.Up(); err != nil {
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
	err = namespaces.Again(flags, inside+"=1").Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}
