// Package images builds the Dockerfiles here, the example's and the release's, runs
// what comes out of them, and stops it under load. Podman does it, with a store of its
// own; images of the names in FROM are made of what this machine has installed.
package images

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// How long anything may take, on a busy machine: a call of podman, which may have to
// compile much, and what is waited for between them.
const (
	buildTime = 5 * time.Minute
	patience  = time.Minute
)

// inside says that we are in the network namespace that TestMain made.
const inside = "LAMEDUCK_TEST_NETWORK=own"

// TestMain runs the tests in a network namespace of its own: the containers' networks
// end there, no packet leaves it, and all of it is gone with the tests.
func TestMain(m *testing.M) {
	if os.Getenv("LAMEDUCK_TEST_NETWORK") != "" || os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	runtime.LockOSThread() // Pdeathsig goes by the thread
	self := exec.Command("/proc/self/exe", os.Args[1:]...)
	self.Env = append(os.Environ(), inside)
	self.Stdin, self.Stdout, self.Stderr = os.Stdin, os.Stdout, os.Stderr
	self.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	var exit *exec.ExitError
	if err := self.Run(); errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "all tests are skipped: no network namespace:", err)
	}
}

// needs skips where a program is not installed, and says where the others are.
func needs(t *testing.T, programs ...string) (paths []string) {
	t.Helper()
	for _, program := range programs {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Skipf("%s is not installed", program)
		}
		paths = append(paths, path)
	}
	return paths
}

// output is what a program says, which must not fail.
func output(t *testing.T, words ...string) string {
	t.Helper()
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", words, err, out)
	}
	return string(out)
}
