// Package images builds the Dockerfiles of docs/examples/docker, Dockerfile,
// Dockerfile.example and Dockerfile.release, runs the images, and stops the containers under
// load. Podman does the work, with a store of its own. Images for the names in FROM are made
// of this machine's programs.
package images

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/netns"
)

// patience bounds every wait except for podman, on a busy machine.
const patience = time.Minute

// inside is set in the process that runs in a network namespace of its own.
const inside = "LAMEDUCK_TEST_NETWORK"

// TestMain runs the tests in a network namespace: the containers' networks end there, no
// packet leaves the namespace, and the namespace goes with the tests.
func TestMain(m *testing.M) {
	if os.Getenv(inside) != "" || os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	code, err := netns.Namespaces{Flags: syscall.CLONE_NEWNET, Env: inside + "=own", RootOnly: true}.Reenter()
	if err != nil {
		fmt.Fprintln(os.Stderr, "all tests are skipped:", err)
	}
	os.Exit(code)
}

// output returns the output of a program, which must not fail.
func output(t *testing.T, words ...string) string {
	t.Helper()
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", words, err, out)
	}
	return string(out)
}

// until polls until reached returns true or an error.
func until(reached func() (bool, error)) error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if yes, err := reached(); yes || err != nil {
			return err
		}
	}
	return errors.New("no success in time")
}
